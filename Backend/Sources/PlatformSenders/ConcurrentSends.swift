import HubCore
import TidingsModels

/// One request for each target, so many at a time.
enum ConcurrentSends {
    /// The answers, in the order of the targets.
    static func answers(
        _ targets: [PushTarget],
        limit: Int,
        _ send: @escaping @Sendable (PushTarget) async -> TargetAnswer
    ) async -> [TargetAnswer] {
        await withTaskGroup(of: (Int, TargetAnswer).self) { group in
            var answers = [TargetAnswer](
                repeating: .refused(.unknownError, reason: "no answer"),
                count: targets.count
            )
            var next = 0
            func start() {
                guard next < targets.count else { return }
                let index = next
                group.addTask { (index, await send(targets[index])) }
                next += 1
            }
            for _ in 0..<limit { start() }
            while let (index, answer) = await group.next() {
                answers[index] = answer
                start()
            }
            return answers
        }
    }
}
