import Glibc

/// Lines for people and programs.
package enum Console {
    package static func print(_ text: String) { write(1, text + "\n") }
    package static func error(_ text: String) { write(2, text + "\n") }

    private static func write(_ descriptor: Int32, _ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// A password: from the terminal without echo, else a line of standard input.
    package static func readPassword(_ prompt: String) -> String? {
        let isTerminal = isatty(0) == 1
        var before = termios()
        if isTerminal {
            write(2, prompt)
            tcgetattr(0, &before)
            var quiet = before
            quiet.c_lflag &= ~tcflag_t(ECHO)
            tcsetattr(0, TCSAFLUSH, &quiet)
        }
        defer {
            if isTerminal {
                tcsetattr(0, TCSAFLUSH, &before)
                write(2, "\n")
            }
        }
        return readLine(strippingNewline: true)
    }
}
