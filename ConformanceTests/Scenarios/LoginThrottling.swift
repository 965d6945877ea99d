import HTTPMessages
import OutboundHTTP
import TidingsBackend
import TidingsConformance
import TidingsModels
import Testing

@testable import AppBackend

/// Outside development passwords are worth guessing.
@Suite("Login throttling")
struct LoginThrottling {
    private typealias Login =
        @Sendable (_ user: String, _ password: String, _ address: String) async throws ->
        HTTPAnswer

    /// An app back end with the users alice and bob, whose requests seem to come from `address`.
    private func run(
        _ body: (_ clock: WorldClock, _ login: @escaping Login) async throws -> Void
    ) async throws {
        try await ScratchFolder.run { folder in
            var configuration = ServerConfiguration(statePath: folder)
            configuration.useFreePorts()
            configuration.hubs = [.init(name: "tidings")]
            configuration.services = [.backend, .hub]
            configuration.trustedProxies = ["127.0.0.1"]
            configuration.isCompatibilityMode = false
            let clock = WorldClock(standingAt: Timestamp(seconds: 1_900_000_000))
            let server = try await TidingsServer.start(configuration, time: clock, log: .inMemory())
            do {
                for user in ["alice", "bob"] {
                    try await server.backendStore?.setUser(user, passwordHash: Passwords.hash("right"))
                }
                let url = try #require(server.endpoints.backend) + "/api/nothing"
                try await body(clock) { user, password, address in
                    try await HTTPClient().send(
                        OutboundRequest(
                            "GET",
                            try #require(HTTPURL(url)),
                            // What a client writes itself stands in front of what the proxy adds.
                            fields: [
                                "Authorization": basic(user, password),
                                "X-Forwarded-For": "203.0.113.99, \(address)",
                            ]
                        )
                    )
                }
            } catch {
                await server.stop()
                throw error
            }
            await server.stop()
        }
    }

    @Test(
        "five wrong passwords are free, then each doubles the wait; other users and addresses, and who is signed in, go on"
    )
    func pair() async throws {
        try await run { clock, login in
            // 404 is the answer to a good password: there is nothing at this address.
            let known = try await login("bob", "right", "192.0.2.1")
            #expect(known.status.code == 404)
            for _ in 0..<5 { #expect(try await login("alice", "wrong", "192.0.2.1").status.code == 401) }
            let refused = try await login("alice", "wrong", "192.0.2.1")
            #expect(refused.status.code == 429 && refused.retryAfterSeconds == 1, "\(refused.text)")
            #expect(refused.text.contains("Too many wrong passwords"))
            // The right one is not looked at either, or the answer would tell.
            #expect(try await login("ALICE", "right", "192.0.2.1").status.code == 429)
            #expect(try await login("alice", "right", "192.0.2.2").status.code == 404)
            #expect(try await login("bob", "right", "192.0.2.1").status.code == 404)
            // Known since a moment ago, also from the address of the guesser.
            #expect(try await login("alice", "right", "192.0.2.1").status.code == 404)
            for wait in [1, 2, 4, 8] {
                clock.advance(by: .seconds(wait))
                #expect(try await login("alice", "wrong", "192.0.2.1").status.code == 401)
                #expect(try await login("alice", "wrong", "192.0.2.1").retryAfterSeconds == wait * 2)
            }
            clock.advance(by: .seconds(901))
            #expect(try await login("alice", "wrong", "192.0.2.1").status.code == 401)
            #expect(try await login("alice", "right", "192.0.2.1").status.code == 404)
        }
    }

    @Test(
        "an address that tries many users is slowed down as well; an unknown user is refused like a known one"
    )
    func address() async throws {
        try await run { _, login in
            for index in 0..<50 {
                let answer = try await login("user\(index)", "x", "2001:db8::\(index)")
                #expect(answer.status.code == 401)
            }
            #expect(try await login("user50", "x", "2001:db8::ffff").status.code == 429)
            #expect(try await login("user50", "x", "2001:db8:0:1::1").status.code == 401)
        }
    }

    @Test("many logins at one moment are refused beyond the bound, not queued without end")
    func flood() async throws {
        try await run { _, login in
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for index in 0..<200 {
                    group.addTask { try await login("u\(index)", "x", "198.51.100.\(index)").status.code }
                }
                return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
            }
            #expect(
                Set(statuses.keys).isSubset(of: [401, 503]) && statuses[401, default: 0] >= 32,
                "\(statuses)"
            )
            #expect(try await login("alice", "right", "198.51.100.200").status.code == 404)
        }
    }

    @Test("the memory of tries is bounded, and the oldest go first")
    func bound() {
        let throttle = LoginThrottle()
        let start = Timestamp(seconds: 1_900_000_000)
        for index in 0..<LoginThrottle.entryCountMax {
            throttle.began("u\(index)", "192.0.2.1", now: start + .milliseconds(index))
        }
        // The last ones are still known.
        #expect(throttle.wait("x", "192.0.2.1", now: start + .seconds(50)) != nil)
        #expect(LoginThrottle.network("2001:db8::1") == "2001:db8:0:0")
        #expect(LoginThrottle.network("::1") == "0:0:0:0")
        #expect(LoginThrottle.network("192.0.2.1") == "192.0.2.1")
    }
}
