/// How the app back end behaves.
public struct BackendConfiguration: Sendable {
    /// What an empty `POST /api/notifications` does: the secure-push and the rich-push tutorial share it.
    public enum Sample: String, Sendable { case secure, rich }

    /// The tutorials' sample.
    public var sample = Sample.secure
    /// True: wrong credentials are 403, as the tutorials document it; false: 401.
    public var isCompatibilityMode = true
    /// Where uploads are kept.
    public var uploadFolder: String
    /// The largest upload.
    public var uploadByteCountMax = 10 << 20
    /// How long a stored item can be fetched.
    public var itemLife = Duration.seconds(30 * 86400)
    /// The picture of the rich sample; nil takes a built-in one.
    public var samplePicture: (bytes: [UInt8], type: String)?

    /// The defaults.
    public init(uploadFolder: String) { self.uploadFolder = uploadFolder }
}
