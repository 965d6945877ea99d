import HTTPMessages

/// Writes `application/x-www-form-urlencoded` bodies (URL Standard, section 5.2; a blank is `%20`, which every reader takes).
enum FormFields {
    static let contentType = "application/x-www-form-urlencoded;charset=utf-8"

    static func body(_ fields: [(name: String, value: String)]) -> [UInt8] {
        let pairs = fields.map { PercentEncoding.encode($0.name) + "=" + PercentEncoding.encode($0.value) }
        return Array(pairs.joined(separator: "&").utf8)
    }
}
