/// A difference that we mean.
struct Deliberate: Sendable {
    let reason: String
    let matches: @Sendable (Recording, RecordedCall, _ difference: String) -> Bool

    static let all: [Deliberate] = [
        Deliberate(
            reason: "a hub that does not exist is 404: Java cannot read the empty feed of the original"
        ) { _, call, difference in
            call.resource.isEmpty && call.status == 200 && difference.contains("status: ours 404")
        },
        Deliberate(
            reason: "a missing right is 401 with the reason: four SDKs take 403 for throttling and repeat it"
        ) { _, call, difference in
            call.status == 403 && difference.hasPrefix("status: ours 401")
        },
        Deliberate(reason: "the JSON of an installation is labelled application/json, not application/xml") {
            _,
            call,
            difference in
            call.resource.hasPrefix("/installations/") && call.status == 200
                && difference
                    == "Content-Type: ours application/json;charset=utf-8, recorded application/xml;charset=utf-8"
        },
        Deliberate(
            reason: "the Location of a batch has no $batch: the JavaScript SDK would take it for the id"
        ) { _, call, difference in
            call.resource == "/messages/$batch" && difference.hasPrefix("Location: ours messages/*?")
        },
        Deliberate(
            reason:
                "a new registration id is told in Location and in Content-Location: SDKs read the one, the documentation names the other"
        ) {
            _,
            call,
            difference in
            call.resource == "/registrationids"
                && difference.hasPrefix("Content-Location: ours registrationids/*")
        },
        Deliberate(
            reason:
                "a job's address is told once, at its creation, not with its id doubled; and a job that has begun says so"
        ) { _, call, difference in
            call.resource.hasPrefix("/jobs/") && difference.contains("Content-Location: ours absent")
        },
        Deliberate(
            reason:
                "a toast template of Windows that is not XML is refused when it is stored: it could never be sent"
        ) { recording, call, difference in
            recording.name.contains("HeadersInTemplate") && call.resource.hasPrefix("/installations/")
                && (difference.contains("status: ours 400") || difference.contains("status: ours 404"))
        },
    ]
}
