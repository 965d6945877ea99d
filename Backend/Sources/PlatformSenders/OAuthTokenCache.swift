import HTTPMessages
import JSONBytes
import OutboundHTTP
import TidingsModels

/// An OAuth access token that is fetched when needed and kept until shortly before it expires. Callers that find
/// none wait for one fetch together.
actor OAuthTokenCache {
    enum Failure: Error, Equatable {
        /// The token service refused the credentials.
        case refused(String)
        /// It could not be asked, or was in trouble.
        case unavailable(String, retryAfter: Duration?)
    }

    /// Makes the request; it may sign an assertion with the current time.
    private let request: @Sendable (Timestamp) throws -> OutboundRequest
    private let client: HTTPClient
    private let time: any TimeSource
    private var current: (token: String, goodUntil: Timestamp)?
    private var fetching: Task<Result<String, Failure>, Never>?
    /// Refreshed so long before it expires, like google-auth does.
    private static let margin = Duration.seconds(225)

    init(
        client: HTTPClient,
        time: any TimeSource,
        request: @escaping @Sendable (Timestamp) throws -> OutboundRequest
    ) {
        self.client = client
        self.time = time
        self.request = request
    }

    func token() async -> Result<String, Failure> {
        if let current, time.now < current.goodUntil { return .success(current.token) }
        if let fetching { return await fetching.value }
        // Every caller that arrives meanwhile waits for this task, and so does this one.
        let task = Task { await self.fetch() }
        fetching = task
        let result = await task.value
        fetching = nil
        return result
    }

    /// The service refused this token: forget it, unless another one has taken its place.
    func invalidate(_ token: String) {
        if current?.token == token { current = nil }
    }

    private func fetch() async -> Result<String, Failure> {
        let answer: HTTPAnswer
        do { answer = try await client.send(try request(time.now)) } catch {
            return .failure(.unavailable("the token service gave no answer: \(error)", retryAfter: nil))
        }
        let json = try? JSONValue(parsing: answer.body)
        guard answer.status.isSuccess, let token = json?["access_token"]?.stringValue else {
            let reason =
                json?["error_description"]?.stringValue ?? json?["error"]?.stringValue
                ?? "status \(answer.status.code)"
            if answer.status.code == 429 || answer.status.code >= 500 {
                return .failure(
                    .unavailable(
                        "the token service: \(reason)",
                        retryAfter: answer.retryAfterSeconds.map { .seconds($0) }
                    )
                )
            }
            return .failure(.refused("the token service: \(reason)"))
        }
        // Entra writes numbers as strings; an absent lifetime is a day in WNS's older answers.
        let lifetime: Int =
            switch json?["expires_in"] {
            case .number(let text)?, .string(let text)?: Int(text) ?? 3600
            default: 86400
            }
        let usable = max(Duration.seconds(lifetime) - Self.margin, .seconds(lifetime) / 2)
        current = (token, time.now + usable)
        return .success(token)
    }
}
