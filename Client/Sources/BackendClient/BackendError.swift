/// The app back end refused or did not answer.
public struct BackendError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The HTTP status; nil when no answer came.
    public let status: Int?
    /// What the back end said, or why no answer came.
    public let message: String

    /// An error.
    public init(status: Int?, message: String) {
        self.status = status
        self.message = message
    }

    /// True when the credentials are missing or refused.
    public var needsLogin: Bool { status == 401 || status == 403 }

    /// Status and text.
    public var description: String { (status.map { "\($0) " } ?? "") + message }
}
