/// A reader of bytes that come from outside, with the laws that hold for every input.
package struct FuzzTarget: Sendable {
    package let name: String
    /// Reads an input; returns what is wrong with the reader, nil when every law holds.
    package let check: @Sendable ([UInt8]) -> String?

    package static let all: [FuzzTarget] = [
        .http1Head, .http1Chunked, .webSocket, .json, .registrationXML, .tagExpression, .template,
        .accessSignature, .deviceLink, .url, .webToken, .multipart, .installation, .installationPatch,
        .registrationQuery,
        .jobLine, .apnsDoor, .fcmDoor, .legacyFCMDoor, .instanceIDDoor, .wnsDoor, .mpnsDoor, .admDoor,
        .webPushDoor, .googleTokenDoor,
    ]

    package static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }
}

/// What a reader said: its value or its refusal.
enum Reading<Value: Equatable>: Equatable {
    case taken(Value)
    case refused(String)

    init(_ read: () throws -> Value) {
        do { self = .taken(try read()) } catch { self = .refused("\(error)") }
    }
}

/// The law that a value is the same after it was written and read again.
func unchanged<Value: Equatable>(_ value: Value, _ text: String, _ read: () throws -> Value) -> String? {
    let again = Reading(read)
    return again == .taken(value) ? nil : "\(value) was written as \(text) and read as \(again)"
}
