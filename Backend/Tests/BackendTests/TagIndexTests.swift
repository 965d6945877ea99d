import HubCore
import TagIndex
import TidingsModels
import Testing

@Suite("The tag index against a simple oracle")
struct TagIndexTests {
    private struct Seeded: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ state >> 29
        }
    }

    private func entry(_ tags: [String], _ isTemplate: Bool) -> IndexEntry {
        IndexEntry(
            RegistrationContent(
                handle: PlatformHandle(unchecked: "AB", platform: .apns),
                tags: tags.map(HubTag.init(unchecked:)),
                template: isTemplate ? RegistrationTemplate(body: "{}") : nil
            )
        )
    }

    private func all(_ audience: any Audience) -> [UInt32] {
        var numbers: [UInt32] = []
        while case let block = audience.numbers(after: numbers.last, countMax: 7), !block.isEmpty {
            numbers += block
        }
        return numbers
    }

    @Test(
        "random changes and expressions: exact with 64 bits of fingerprint, never too few with 8",
        arguments: [64, 8]
    )
    func oracle(bits: Int) throws {
        var random = Seeded(state: 7)
        let index = RoaringIndex(seed: 99, fingerprintBits: bits)
        var records: [UInt32: (tags: [String], isTemplate: Bool)] = [:]
        // Few shared tags, many of one or two registrations.
        func draw() -> [String] {
            (0..<Int.random(in: 0...4, using: &random)).map { _ in
                Bool.random(using: &random)
                    ? "shared\(Int.random(in: 0..<4, using: &random))"
                    : "user:\(Int.random(in: 0..<300, using: &random))"
            }
        }
        func unique(_ tags: [String]) -> [String] { Array(Set(tags)).sorted() }
        for step in 0..<1000 {
            let number = UInt32.random(in: 0..<400, using: &random)
            let old = records[number]
            let isRemoval = old != nil && Int.random(in: 0..<4, using: &random) == 0
            let new = isRemoval ? nil : (tags: unique(draw()), isTemplate: Bool.random(using: &random))
            records[number] = new
            index.apply(
                IndexChange(
                    number: number,
                    old: old.map { entry($0.tags, $0.isTemplate) },
                    new: new.map { entry($0.tags, $0.isTemplate) },
                    change: Int64(step)
                )
            )
            guard step.isMultiple(of: 10) else { continue }
            let a = "user:\(Int.random(in: 0..<300, using: &random))",
                b = "shared\(Int.random(in: 0..<4, using: &random))"
            for text in [
                a, b, "!\(a)", "\(a) || \(b)", "\(b) && !\(a)", "!(\(a) || \(b))", "!\(b) && !\(a)",
                "(\(a) || \(b)) && !shared1",
            ] {
                let expression = try TagExpression(parsing: text)
                for kind in [IndexEntry.Kind.native(.apns), .template] {
                    let expected = records.filter {
                        ($0.value.isTemplate == (kind == .template))
                            && expression.matches(Set($0.value.tags.map(HubTag.init(unchecked:))))
                    }.keys.sorted()
                    let found = all(index.resolve(kind, expression))
                    if bits == 64 { #expect(found == expected, "\(text)") }
                    // Fewer would lose a device; more are dropped when the record is read.
                    #expect(Set(expected).isSubset(of: found), "\(text)")
                }
            }
        }
        #expect(all(index.resolve(.template, nil)) == records.filter { $0.value.isTemplate }.keys.sorted())
    }

    @Test("an audience survives as bytes, and knows its members")
    func serialized() throws {
        let index = RoaringIndex(seed: 1)
        for number in stride(from: UInt32(3), to: 100_000, by: 7) {
            index.apply(
                IndexChange(number: number, old: nil, new: entry(["t"], false), change: Int64(number))
            )
        }
        let audience = index.resolve(.native(.apns), try TagExpression(parsing: "T"))
        let restored = try #require(index.audience(serialized: audience.serialized, change: 5))
        #expect(restored.count == audience.count)
        #expect(all(restored) == all(audience))
        #expect(restored.contains(10) && !restored.contains(11))
        #expect(index.audience(serialized: [1, 2, 3], change: 0) == nil)
        #expect(all(index.resolve(.native(.wns), nil)).isEmpty)
    }
}
