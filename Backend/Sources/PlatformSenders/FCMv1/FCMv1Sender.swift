import HTTPMessages
package import HubCore
package import OutboundHTTP
package import TidingsModels

/// Sends to Google over FCM HTTP v1.
package final class FCMv1Sender: PlatformSender {
    package let settings: FCMv1Settings
    private let pool: HTTP2Pool
    private let tokens: OAuthTokenCache

    package init(_ settings: FCMv1Settings, pool: HTTP2Pool, client: HTTPClient, time: any TimeSource) {
        self.settings = settings
        self.pool = pool
        tokens = OAuthTokenCache(client: client, time: time) {
            try FCMv1Payload.tokenRequest(settings, now: $0)
        }
    }

    deinit { pool.close() }

    package func send(_ payload: PlatformPayload, to targets: [PushTarget]) async -> [TargetAnswer] {
        var answers = [TargetAnswer?](repeating: nil, count: targets.count)
        var left = Array(targets.indices)
        // A refused access token is replaced once.
        for attempt in 0..<2 where !left.isEmpty {
            let token: String
            switch await tokens.token() {
            case .success(let fetched): token = fetched
            case .failure(let failure):
                for index in left { answers[index] = failure.targetAnswer }
                left = []
                continue
            }
            let requests = left.map {
                FCMv1Payload.request(payload, to: targets[$0], token: token, settings: settings)
            }
            var again: [Int] = []
            for (index, result) in zip(left, await pool.send(requests)) {
                switch result {
                case .success(let answer) where answer.status.code == 401 && attempt == 0: again.append(index)
                case .success(let answer): answers[index] = FCMv1Response.answer(answer)
                case .failure(let error): answers[index] = error.targetAnswer
                }
            }
            if !again.isEmpty { await tokens.invalidate(token) }
            left = again
        }
        return answers.map { $0 ?? .refused(.unknownError, reason: "no answer") }
    }
}
