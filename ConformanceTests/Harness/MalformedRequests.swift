/// Requests that RFC 9112 forbids, with the status that refuses each, and a well-formed twin that differs only in the fault.
package struct MalformedRequest: Sendable {
    package let name: String
    package let text: String
    package let status: String
    /// Asks for the end of the connection, so that its answer is whole.
    package let twin: String

    private init(_ name: String, _ text: String, _ status: String, _ twin: String) {
        self.name = name
        self.text = text
        self.status = status
        self.twin = twin.replacing("Host", with: "Connection: close\r\nHost")
    }

    private static let big = String(repeating: "x", count: 64 << 10)

    package static let table: [MalformedRequest] = [
        .init(
            "Content-Length with Transfer-Encoding",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "400",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        ),
        .init(
            "two different Content-Length",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
            "400",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
        ),
        .init(
            "Content-Length: +2",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\nab",
            "400",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab"
        ),
        .init(
            "Content-Length: 2,2",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2,2\r\n\r\nab",
            "400",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 02\r\n\r\nab"
        ),
        .init(
            "Content-Length over 64 bits",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "400",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
        ),
        .init(
            "space before the colon",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "400",
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        ),
        .init(
            "folded header line",
            "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n",
            "400",
            "GET / HTTP/1.1\r\nHost: a\r\nX: 1 2\r\n\r\n"
        ),
        .init("bare LF line ends", "GET / HTTP/1.1\nHost: a\n\n", "400", "GET / HTTP/1.1\r\nHost:a\r\n\r\n"),
        .init(
            "bare CR in a value",
            "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r2\r\n\r\n",
            "400",
            "GET / HTTP/1.1\r\nHost: a\r\nX: 1\t2\r\n\r\n"
        ),
        .init(
            "NUL in a value",
            "GET / HTTP/1.1\r\nHost: a\r\nX: 1\u{0}2\r\n\r\n",
            "400",
            "GET / HTTP/1.1\r\nHost: a\r\nX: é\r\n\r\n"
        ),
        .init("no Host", "GET / HTTP/1.1\r\n\r\n", "400", "GET / HTTP/1.0\r\n\r\n"),
        .init(
            "two Host",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            "400",
            "GET / HTTP/1.1\r\nHost: a:80\r\n\r\n"
        ),
        .init(
            "Transfer-Encoding: xchunked",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
            "501",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n"
        ),
        .init(
            "chunked, identity",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
            "501",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\n\r\n"
        ),
        .init(
            "chunk size 0x2",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n\r\n",
            "400",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n02\r\nab\r\n0\r\n\r\n"
        ),
        .init(
            "chunk lines ended by LF",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\nab\n0\n\n",
            "400",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n00\r\nX: y\r\n\r\n"
        ),
        .init(
            "no CRLF after chunk data",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
            "400",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n"
        ),
        .init(
            "HTTP/1.0 with Transfer-Encoding",
            "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "400",
            "POST /echo HTTP/1.0\r\nContent-Length: 1\r\n\r\nx"
        ),
        .init(
            "control byte in a header name",
            "GET / HTTP/1.1\r\nHost: a\r\nX\u{1}: 1\r\n\r\n",
            "400",
            "GET / HTTP/1.1\r\nHost: a\r\nX!#$%&'*+-.^_`|~: 1\r\n\r\n"
        ),
        .init(
            "64 KiB header",
            "GET / HTTP/1.1\r\nHost: a\r\nX: \(big)\r\n\r\n",
            "431",
            "GET / HTTP/1.1\r\nHost: a\r\nX: \(big.prefix(8000))\r\n\r\n"
        ),
        .init(
            "1000 headers",
            "GET / HTTP/1.1\r\nHost: a\r\n\(String(repeating: "X: 1\r\n", count: 1000))\r\n",
            "431",
            "GET / HTTP/1.1\r\nHost: a\r\n\(String(repeating: "X: 1\r\n", count: 90))\r\n"
        ),
        .init(
            "a target that is too long",
            "GET /\(big.prefix(9000)) HTTP/1.1\r\nHost: a\r\n\r\n",
            "414",
            "GET /\(big.prefix(7000)) HTTP/1.1\r\nHost: a\r\n\r\n"
        ),
        .init(
            "another version",
            "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
            "505",
            "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
        ),
    ]
}
