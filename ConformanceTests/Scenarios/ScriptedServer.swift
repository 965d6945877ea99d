import HTTPMessages
import HTTPServing
import PushTelemetry
import Synchronization
import TidingsConformance

/// A server whose answers are told beforehand, for what ours never answers by itself. It keeps the request lines.
final class ScriptedServer: Sendable {
    private struct State {
        var answers: [HTTPResponse] = []
        var requests: [String] = []
    }

    private let state = Mutex(State())

    /// Runs a server on a free port. A request beyond the script is answered with 500.
    static func run<Value>(_ body: (ScriptedServer, HTTPURL) async throws -> Value) async throws -> Value {
        let script = ScriptedServer()
        let server = HTTPServer(
            log: Log("script", to: .inMemory()),
            counters: Counters(),
            httpDate: { "Sun, 06 Nov 1994 08:49:37 GMT" }
        ) { request in script.answer(request) }
        let port = try server.start(host: "127.0.0.1", port: 0)
        guard let url = HTTPURL("http://127.0.0.1:\(port)/") else {
            throw WorldFailure("port \(port) makes no URL")
        }
        do {
            let value = try await body(script, url)
            await server.drain(within: .zero)
            return value
        } catch {
            await server.drain(within: .zero)
            throw error
        }
    }

    /// Forgets the requests so far and answers the next ones so.
    func expect(_ answers: [HTTPResponse]) {
        state.withLock { $0 = State(answers: answers) }
    }

    /// `METHOD path` of each request since the last ``expect(_:)``.
    var requests: [String] { state.withLock { $0.requests } }

    private func answer(_ request: HTTPRequest) -> HTTPResponse {
        state.withLock { state in
            state.requests.append("\(request.method) \(request.target.rawPath)")
            return state.answers.isEmpty ? HTTPResponse(500) : state.answers.removeFirst()
        }
    }
}
