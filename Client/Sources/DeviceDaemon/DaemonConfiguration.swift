package import HTTPMessages
public import TidingsModels
package import HubClient

/// Where a device daemon finds its services, and how it behaves.
public struct DaemonConfiguration: Sendable {
    /// How the device registers with the app back end.
    public enum RegistrationStyle: String, Sendable {
        /// `POST /api/register?handle=`, then `PUT` (the notify-users tutorial).
        case handle
        /// `POST /api/register` with the installation id (the register-current-user tutorial).
        case installation
    }

    /// The platform that the device stands for.
    public var platform: Platform
    /// Keeps everything that survives a restart.
    public var statePath: String
    package var gateway: HTTPURL
    package var backend: HTTPURL?
    package var hub: HubConnectionString?
    package var hubName: String
    /// Opt-in: a string with Send, for `send --category`. Never ship one in an app.
    package var sendHub: HubConnectionString?
    /// A certificate authority for the three services, instead of the machine's trust store.
    package var authorityFile: String?
    /// How the device registers.
    public var style = RegistrationStyle.handle
    /// True: rich pushes become local notifications; false: alerts with OK and More.
    public var isBackground = false
    /// Between the arrival of a rich push and its local notification.
    public var localNotificationDelay = Duration.zero
    /// Web Push: the only application server that may send, its public key in base64url; nil lets every server send.
    public var vapidKey: String?
    /// Run for each event, with the event's JSON on its standard input.
    public var execCommand: String?

    package init(
        platform: Platform,
        statePath: String,
        gateway: HTTPURL,
        backend: HTTPURL?,
        hub: HubConnectionString?,
        hubName: String
    ) {
        self.platform = platform
        self.statePath = statePath
        self.gateway = gateway
        self.backend = backend
        self.hub = hub
        self.hubName = hubName
    }

    /// A successful registration is not repeated at a start within this time when nothing changed.
    package static let registrationLife = Duration.seconds(24 * 3600)
    /// How long `login` and `subscribe` wait for the handle.
    package static let handleTimeout = Duration.seconds(10)
}
