import HTTPMessages

/// An `application/x-www-form-urlencoded` body.
struct FormBody {
    let pairs: [(String, String)]

    /// Nil for a broken encoding.
    init?(_ bytes: [UInt8]) {
        var pairs: [(String, String)] = []
        for part in String(decoding: bytes, as: UTF8.self).split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentEncoding.decode(pair[0], plusIsBlank: true),
                let value = PercentEncoding.decode(pair.count == 2 ? pair[1] : "", plusIsBlank: true)
            else { return nil }
            pairs.append((name, value))
        }
        self.pairs = pairs
    }

    subscript(name: String) -> String? { pairs.first { $0.0 == name }?.1 }
}
