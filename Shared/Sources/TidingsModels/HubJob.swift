/// An import or export of registrations (protocol reference, section 8).
public struct HubJob: Equatable, Sendable {
    /// What a job does; the raw values are those of the wire.
    public enum Kind: String, CaseIterable, Sendable {
        /// Writes every registration to a file.
        case export = "ExportRegistrations"
        /// Makes registrations; a line with the id of one that is there fails.
        case create = "ImportCreateRegistrations"
        /// Changes registrations that are there.
        case update = "ImportUpdateRegistrations"
        /// Deletes registrations by their ids.
        case delete = "ImportDeleteRegistrations"
        /// Makes or changes registrations by their ids.
        case upsert = "ImportUpsertRegistrations"
    }

    /// How far a job is.
    public enum Status: String, CaseIterable, Sendable {
        /// Accepted, and on disk.
        case started = "Started"
        /// Under way.
        case running = "Running"
        /// Done; single lines may have failed.
        case completed = "Completed"
        /// Given up: ``HubJob/failure`` tells why.
        case failed = "Failed"

        /// True when nothing more happens.
        public var isFinal: Bool { self == .completed || self == .failed }
    }

    /// Its id; opaque.
    public var id: String
    /// What it does.
    public var kind: Kind
    /// How far it is.
    public var status: Status
    /// From 0 to 100.
    public var progress: Double
    /// Where the output goes: a container of the hub, of Azure, or a folder.
    public var outputContainer: String
    /// Imports: the file with a registration on each line.
    public var importFile: String?
    /// Properties that came with it.
    public var inputProperties: [String: String]
    /// `OutputFilePath` and `FailedFilePath`, below the container.
    public var outputProperties: [String: String]
    /// Why it was given up.
    public var failure: String?
    /// When it was accepted.
    public var created: Timestamp
    /// When it changed last.
    public var updated: Timestamp

    /// A job.
    public init(
        id: String = "",
        kind: Kind,
        status: Status = .started,
        progress: Double = 0,
        outputContainer: String,
        importFile: String? = nil,
        inputProperties: [String: String] = [:],
        outputProperties: [String: String] = [:],
        failure: String? = nil,
        created: Timestamp = Timestamp(milliseconds: 0),
        updated: Timestamp = Timestamp(milliseconds: 0)
    ) {
        self.id = id
        self.kind = kind
        self.status = status
        self.progress = progress
        self.outputContainer = outputContainer
        self.importFile = importFile
        self.inputProperties = inputProperties
        self.outputProperties = outputProperties
        self.failure = failure
        self.created = created
        self.updated = updated
    }
}
