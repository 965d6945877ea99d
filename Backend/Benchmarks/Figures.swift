import ProcessLifecycle

/// Ratios by name, of several rounds.
struct Figures {
    private var names: [String] = []
    private var values: [String: [Double]] = [:]

    mutating func add(_ name: String, _ value: Double) {
        if values[name] == nil { names.append(name) }
        values[name, default: []].append(value)
    }

    func report() {
        for name in names {
            let values = values[name] ?? []
            Console.print("  median ratio \(name) \(decimal(values.sorted()[values.count / 2], 2))")
        }
    }
}
