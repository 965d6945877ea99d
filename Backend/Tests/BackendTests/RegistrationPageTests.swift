import HubCore
import ProcessLifecycle
import TidingsModels
import Testing

@Suite("Pages of registrations")
struct RegistrationPageTests {
    @Test("by tag: every registration that has it, of each kind, once and in order, while others come and go")
    func byTag() async throws {
        let folder = try Files.makeScratchFolder("tidings-pages")
        defer { Files.removeTree(folder) }
        let test = try await TestHub.open(folder, [:])
        var wanted: [RegistrationID] = []
        var gone: [RegistrationID] = []
        for index in 0..<700 {
            let isWanted = index % 2 == 0
            let platform: Platform = index % 3 == 0 ? .fcmV1 : .apns
            let handle = try PlatformHandle(String(index + 0x1000, radix: 16), platform: platform)
            let body = #"{"message":{"data":{"a":"$(b)"}}}"#
            let template = index % 5 == 0 ? RegistrationTemplate(body: body) : nil
            let made = try await test.hub.create(
                RegistrationContent(
                    handle: handle,
                    tags: try HubTag.list(isWanted ? "x,all" : "y,all"),
                    template: template
                ),
                by: .manager
            )
            if isWanted { wanted.append(made.id) } else { gone.append(made.id) }
        }
        // It had the tag, and has it no more.
        let changed = wanted.remove(at: 100)
        let content = RegistrationContent(
            handle: try PlatformHandle("AB", platform: .apns),
            tags: try HubTag.list("y")
        )
        _ = try await test.hub.put(changed.text, bodyID: nil, content, .none, by: .manager)

        let tag = RegistrationFilter.tag(try HubTag("X"))
        var found: [RegistrationID] = []
        var after: UInt32?
        repeat {
            let page = try await test.hub.registrations(tag, after: after, countMax: 70)
            found += page.registrations.map(\.id)
            after = page.next
            if let other = gone.popLast() { try await test.hub.delete(other.text, .none, by: .manager) }
            _ = try await test.register(found.count, tags: "y")
        } while after != nil
        #expect(found == wanted)
        await test.close()
    }
}
