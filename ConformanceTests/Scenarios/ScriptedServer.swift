import HTTPMessages
import HTTPServing
import PushTelemetry
import Synchronization
import TidingsConformance

/// A server whose answers are told beforehand, for what ours never answers by itself. It keeps the requests.
final class ScriptedServer: Sendable {
    /// What came.
    struct Heard: Sendable {
        var line: String
        var fields: HTTPFields
        var body: [UInt8]

        var text: String { String(decoding: body, as: UTF8.self) }

        /// A field of a form body; nil when there is none.
        subscript(form name: String) -> String? {
            for pair in text.split(separator: "&") where pair.hasPrefix(name + "=") {
                return PercentEncoding.decode(pair.dropFirst(name.count + 1), plusIsBlank: true)
            }
            return nil
        }
    }

    private struct State {
        var answers: [HTTPResponse] = []
        var heard: [Heard] = []
    }

    private let state = Mutex(State())

    /// Runs a server on a free port. A request beyond the script is answered with 500.
    static func run<Value>(_ body: (ScriptedServer, HTTPURL) async throws -> Value) async throws -> Value {
        let script = ScriptedServer()
        let server = HTTPServer(
            log: Log("script", to: .inMemory()),
            counters: Counters(),
            httpDate: { "Sun, 06 Nov 1994 08:49:37 GMT" }
        ) { request in await script.answer(request) }
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
    var requests: [String] { heard.map(\.line) }

    /// Each request since the last ``expect(_:)``.
    var heard: [Heard] { state.withLock { $0.heard } }

    private func answer(_ request: HTTPRequest) async -> HTTPResponse {
        let body = (try? await request.body.collect(upTo: 1 << 20)) ?? []
        return state.withLock { state in
            state.heard.append(
                Heard(
                    line: "\(request.method) \(request.target.rawPath)",
                    fields: request.fields,
                    body: body
                )
            )
            return state.answers.isEmpty ? HTTPResponse(500) : state.answers.removeFirst()
        }
    }
}
