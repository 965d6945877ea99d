extension StringProtocol {
    /// What stands before and behind the first `://`; nil when there is none.
    ///
    /// The standard library's search for a text is generic: it takes longer than all the rest of reading a URL.
    package var aroundScheme: (scheme: SubSequence, rest: SubSequence)? {
        let bytes = utf8
        var start = bytes.startIndex
        while let colon = bytes[start...].firstIndex(of: UInt8(ascii: ":")) {
            start = bytes.index(after: colon)
            let behind = bytes[start...].prefix(2)
            if behind.elementsEqual("//".utf8) { return (self[..<colon], self[behind.endIndex...]) }
        }
        return nil
    }
}

extension [UInt8] {
    /// Whether a word of ASCII stands somewhere in the bytes. As above.
    package func holds(_ word: StaticString) -> Bool {
        let count = word.utf8CodeUnitCount
        guard count > 0 else { return true }
        return withUnsafeBufferPointer { bytes in
            let word = UnsafeBufferPointer(start: word.utf8Start, count: count)
            var start = 0
            while start + count <= bytes.count {
                guard let found = bytes[start...].firstIndex(of: word[0]), found + count <= bytes.count else {
                    return false
                }
                if (1..<count).allSatisfy({ bytes[found + $0] == word[$0] }) { return true }
                start = found + 1
            }
            return false
        }
    }
}
