import FuzzTargets
import ProcessLifecycle
import Testing

/// What the fuzzer began with, and what it found: `make fuzz`, and each input here forever.
@Suite("Fuzzing corpora")
struct CorpusTests {
    private static let folder =
        #filePath.split(separator: "/").dropLast(3).reduce(into: "") { $0 += "/" + $1 } + "/Fuzz/Corpora"

    @Test("every input of every reader keeps its laws", arguments: FuzzTarget.all.map(\.name))
    func replay(_ name: String) throws {
        let target = try #require(FuzzTarget.named(name))
        let inputs = try #require(Files.list(Self.folder + "/" + name)).filter { !$0.isFolder }
        #expect(!inputs.isEmpty)
        for input in inputs {
            let bytes = try #require(try Files.read("\(Self.folder)/\(name)/\(input.name)"))
            #expect(target.check(bytes) == nil, "\(name)/\(input.name)")
        }
    }

    @Test("no corpus is without a reader")
    func complete() throws {
        let folders = try #require(Files.list(Self.folder)).map(\.name)
        #expect(Set(folders) == Set(FuzzTarget.all.map(\.name)))
    }
}
