import ProcessLifecycle
import TidingsConformance

/// One line of the table, for all processes at one moment.
struct SoakSample {
    var seconds = 0.0
    var hub: ProcessFigures
    var gateway: ProcessFigures
    var onlineCount = 0
    var sentCount = 0
    var receivedCount = 0
}

/// Draws resident memory over time.
enum SoakPlot {
    static func svg(_ samples: [SoakSample]) -> String {
        let width = 800.0, height = 360.0, left = 60.0, bottom = 40.0
        let end = max(1, samples.last?.seconds ?? 1)
        let megabytes = samples.flatMap { [$0.hub.residentByteCount, $0.gateway.residentByteCount] }
            .map { Double($0) / 1_048_576 }
        let top = max(16, (megabytes.max() ?? 16) * 1.15)
        func x(_ seconds: Double) -> Double { left + seconds / end * (width - left - 20) }
        func y(_ value: Double) -> Double { height - bottom - value / top * (height - bottom - 30) }
        func line(_ color: String, _ value: (SoakSample) -> Int) -> String {
            let points = samples.map {
                "\(rounded(x($0.seconds))),\(rounded(y(Double(value($0)) / 1_048_576)))"
            }
            return
                "<polyline fill=\"none\" stroke=\"\(color)\" stroke-width=\"1.5\" points=\"\(points.joined(separator: " "))\"/>\n"
        }
        func text(_ x: Double, _ y: Double, _ text: String, _ anchor: String = "start") -> String {
            "<text x=\"\(rounded(x))\" y=\"\(rounded(y))\" text-anchor=\"\(anchor)\">\(text)</text>\n"
        }
        var svg =
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(Int(width)) \(Int(height))\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        for step in 0...4 {
            let value = top / 4 * Double(step)
            svg +=
                "<line x1=\"\(left)\" x2=\"\(width - 20)\" y1=\"\(rounded(y(value)))\" y2=\"\(rounded(y(value)))\" stroke=\"#ddd\"/>\n"
            svg += text(left - 6, y(value) + 4, "\(Int(value))", "end")
            svg += text(
                x(end / 4 * Double(step)),
                height - bottom + 18,
                "\(Int(end / 240 * Double(step))) min",
                "middle"
            )
        }
        svg += text(left, 18, "resident memory, MiB: hub (solid blue), gateway (red)")
        svg += line("#1f5fbf") { $0.hub.residentByteCount }
        svg += line("#c0392b") { $0.gateway.residentByteCount }
        return svg + "</svg>\n"
    }

    private static func rounded(_ value: Double) -> Double { (value * 10).rounded() / 10 }
}
