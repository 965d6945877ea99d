import CTidingsCurl
package import EventLoops
package import HTTPMessages

/// Everyday requests over libcurl: tokens, REST, WNS. HTTP/1.1 or HTTP/2 as the server offers; no redirects, since
/// a redirect could carry a credential to another host.
package final class HTTPClient: Sendable {
    private let engine: CurlEngine
    private let trust: OutboundTrust
    private let identity: Identity?
    private let userAgent: String

    /// PEM texts; the leaf first.
    package typealias Identity = (certificateChain: [UInt8], privateKey: [UInt8])

    /// - Parameters:
    ///   - identity: Shown to every server that asks for a certificate.
    ///   - idleTimeout: After so long without a request every kept connection is closed.
    package init(
        trust: OutboundTrust = OutboundTrust(),
        showing identity: Identity? = nil,
        userAgent: String = "tidings",
        loop: EventLoop? = nil,
        idleTimeout: Duration = .seconds(60)
    ) {
        engine = CurlEngine(on: loop ?? EventLoopGroup.shared.next(), idleTimeout: idleTimeout)
        self.trust = trust
        self.identity = identity
        self.userAgent = userAgent
    }

    /// Sends a request and returns the whole answer.
    /// - Throws: ``OutboundError`` when no answer came.
    package func send(_ request: OutboundRequest) async throws -> HTTPAnswer {
        try await withCheckedThrowingContinuation { continuation in
            let transfer = CurlTransfer(
                request,
                authorityFile: trust.authorityFiles[request.url.origin],
                identity: identity,
                userAgent: userAgent,
                continuation
            )
            engine.start(transfer)
        }
    }
}
