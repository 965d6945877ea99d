/// A refusal or failure at the hub or the app back end.
public struct HubError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What a caller can act on. ``httpStatus`` maps it once.
    public enum Code: String, Sendable, CaseIterable {
        /// The request is wrong; sending it again does not help.
        case badRequest, unauthorized, forbidden, notFound, methodNotAllowed, conflict, gone,
            preconditionFailed
        /// A size or rate limit.
        case tooLarge, throttled
        /// Ours or a peer's fault.
        case unavailable, badGateway, internalError
    }

    /// The class of the error.
    public let code: Code
    /// What was seen and what is allowed, for people. Never holds a secret.
    public let message: String
    /// When to come back, if the error is temporary.
    public let retryAfter: Duration?
    /// What `Allow` lists beside ``Code/methodNotAllowed`` (RFC 9110 section 15.5.6), such as `GET, PUT`.
    package private(set) var allowedMethods: String?

    /// The address is there, and has other methods.
    package static func methodNotAllowed(_ method: String, at place: String, allowed: String) -> HubError {
        let words = allowed.contains(",") ? "allowed are" : "allowed is"
        var error = HubError(.methodNotAllowed, "\(method) is not allowed \(place); \(words) \(allowed).")
        error.allowedMethods = allowed
        return error
    }

    /// An error with its text.
    public init(_ code: Code, _ message: String, retryAfter: Duration? = nil) {
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
    }

    /// ``retryAfter`` as `Retry-After` has it: whole seconds, not too few, at least one.
    package var retryAfterSeconds: Int64? {
        retryAfter.map { wait in
            let (seconds, rest) = wait.components
            return max(1, seconds + (rest > 0 ? 1 : 0))
        }
    }

    /// The HTTP status of the code.
    public var httpStatus: Int {
        switch code {
        case .badRequest: 400
        case .unauthorized: 401
        case .forbidden: 403
        case .notFound: 404
        case .methodNotAllowed: 405
        case .conflict: 409
        case .gone: 410
        case .preconditionFailed: 412
        case .tooLarge: 413
        case .throttled: 429
        case .internalError: 500
        case .badGateway: 502
        case .unavailable: 503
        }
    }

    /// The code and the text.
    public var description: String { "\(code.rawValue): \(message)" }
}
