import HTTPMessages
import HubCore
import OutboundHTTP
import TidingsModels

extension OutboundError {
    /// What a request without an answer means for its target: it is tried again under the same delivery id.
    var targetAnswer: TargetAnswer {
        switch kind {
        case .unreachable: .retry(.pnsUnreachable, reason: description, after: nil)
        case .interrupted, .badAnswer: .retry(.pnsInterfaceError, reason: description, after: nil)
        case .timeout: .retry(.pnsUnavailable, reason: description, after: nil)
        }
    }
}

extension OAuthTokenCache.Failure {
    var targetAnswer: TargetAnswer {
        switch self {
        case .refused(let reason): .refused(.invalidCredentials, reason: reason)
        case .unavailable(let reason, let after): .retry(.pnsUnavailable, reason: reason, after: after)
        }
    }
}

extension HTTPClient {
    /// The answer of one request, as `read` takes it; trouble is an answer too.
    func answer(
        _ request: OutboundRequest,
        _ read: (HTTPAnswer) -> TargetAnswer
    ) async -> TargetAnswer {
        do { return read(try await send(request)) } catch let error as OutboundError {
            return error.targetAnswer
        } catch { return .retry(.pnsInterfaceError, reason: String(describing: error), after: nil) }
    }
}

extension OAuthTokenCache {
    /// The answer of a request with an access token, which is replaced once when the service refuses it.
    func answer(
        from client: HTTPClient,
        _ request: (String) -> OutboundRequest,
        _ read: (HTTPAnswer) -> TargetAnswer
    ) async -> TargetAnswer {
        for attempt in 0..<2 {
            let token: String
            switch await self.token() {
            case .success(let fetched): token = fetched
            case .failure(let failure): return failure.targetAnswer
            }
            var isRefused = false
            let answer = await client.answer(request(token)) { answer in
                isRefused = answer.status.code == 401
                return read(answer)
            }
            guard isRefused, attempt == 0 else { return answer }
            invalidate(token)
        }
        return .refused(.invalidCredentials, reason: "the access token was refused twice")
    }
}
