package import HTTPMessages

/// A request on a push connection. `:method` is POST; scheme and authority are the pool's.
package struct HTTP2Request: Sendable {
    package var path: String
    package var fields: [Field]
    package var body: [UInt8]

    package struct Field: Sendable {
        package var name: String
        package var value: String
        /// True for values that differ in each request: kept out of the header table, whose 4,096 bytes they
        /// would flush (RFC 7541 section 6.2.2).
        package var isUnique: Bool

        /// - Parameter name: In lower case, as HTTP/2 demands.
        package init(_ name: String, _ value: String, isUnique: Bool = false) {
            self.name = name
            self.value = value
            self.isUnique = isUnique
        }
    }

    package init(path: String, fields: [Field], body: [UInt8]) {
        self.path = path
        self.fields = fields
        self.body = body
    }
}

package typealias HTTP2Result = Result<HTTPAnswer, OutboundError>
