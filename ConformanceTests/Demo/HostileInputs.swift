import HTTPMessages
import ProcessLifecycle
import TidingsConformance
import WebSocketFraming

/// `tidings-demo --hostile`: what forbidden input gets from a running gateway, as tables. Each row is a connection of its own.
struct HostileInputs {
    private let address: String
    private(set) var failureCount = 0

    init(_ world: World) throws { address = try world.gatewayURL }

    mutating func all() async throws {
        try await malformed()
        try await floods()
        try await webSocket()
        let after = try await RawConnection.exchange(
            Array("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".utf8),
            with: address
        )
        row(after.hasPrefix("HTTP/1.1 200 "), "\nafter all of it, a plain request: \(Self.firstLine(after))")
        Console.print(failureCount == 0 ? "0 failed" : "\(failureCount) failed")
    }

    private mutating func row(_ isGood: Bool, _ text: String) {
        if !isGood { failureCount += 1 }
        Console.print(text + (isGood ? "" : "  FAILED"))
    }

    private static func firstLine(_ text: String) -> String {
        String(text.utf8.prefix { $0 != 0x0D }) ?? "no answer"
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private mutating func malformed() async throws {
        Console.print("HTTP/1.1: the malformed request, and a twin without the fault\n")
        for request in MalformedRequest.table {
            let answer = try await RawConnection.exchange(
                Array((request.text + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n").utf8),
                with: address
            )
            let twin = try await RawConnection.exchange(Array(request.twin.utf8), with: address)
            let count = answer.split(separator: "HTTP/1.1 ").count
            row(
                answer.hasPrefix("HTTP/1.1 \(request.status) ") && count == 1
                    && (twin.hasPrefix("HTTP/1.1 200 ") || twin.hasPrefix("HTTP/1.1 404 ")),
                "\(Self.padded(request.name, 40)) \(Self.padded(Self.firstLine(answer), 46)) closed; twin: \(Self.firstLine(twin))"
            )
        }
    }

    private mutating func floods() async throws {
        Console.print("\nHTTP/2: \(HTTP2Flood.count) times on one connection\n")
        for flood in HTTP2Flood.allCases {
            let bytes = flood.bytes
            let answer = try await RawConnection.bytes(bytes, with: address)
            let end = HTTP2Flood.endsInGoAway(answer) ? "GOAWAY, closed" : "closed"
            row(
                answer.count <= HTTP2Flood.count * 17 + 4096,
                "\(Self.padded(flood.rawValue, 40)) \(end) after \(answer.count) bytes of answers to \(bytes.count) bytes"
            )
        }
    }

    private mutating func webSocket() async throws {
        Console.print("\nWebSocket (RFC 6455): the violation, and a twin without it\n")
        for violation in WebSocketViolation.table {
            let code = try await closeCode(violation.bytes)
            // A close frame of the client's ends the twin, if the twin is none itself.
            let twin = try await closeCode(
                violation.twin + WebSocketEncoder.close(1000, "", mask: [0, 0, 0, 0])
            )
            row(
                code == violation.closeCode && [1000, 1001, 3000].contains(twin),
                "\(Self.padded(violation.rule, 52)) close \(code); twin: close \(twin)"
            )
        }
    }

    /// The code of the close frame that a device gets which says hello and then these bytes; 0 without one.
    private func closeCode(_ bytes: [UInt8]) async throws -> UInt16 {
        let answer = try await RawConnection.bytes(
            DeviceHello.bytes(host: "a", uaid: nil) + bytes,
            with: address
        )
        guard let head = answer.firstRange(of: [0x0D, 0x0A, 0x0D, 0x0A]) else { return 0 }
        var decoder = WebSocketDecoder(role: .client, messageByteCountMax: 65536)
        for event in try decoder.receive(Array(answer[head.upperBound...]).span) {
            if case .close(let code, _) = event { return code }
        }
        return 0
    }
}
