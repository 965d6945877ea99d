import JSONBytes
import ProcessLifecycle
import PushCredentials
import PushGateway

/// One set of gateway credentials for all Worlds of a process: making an RSA key takes longer than booting the rest.
enum SharedCredentials {
    private static let bytes: [UInt8] = {
        guard let bytes = try? GatewayCredentials.make().json().serialized() else {
            preconditionFailure("cannot make keys")
        }
        return bytes
    }()

    static func install(in statePath: String) throws {
        let path = statePath + "/keys/gateway.json"
        if Files.exists(path) { return }
        try StateFolder.makeFolder(statePath + "/keys")
        try Files.replace(path, with: bytes)
    }
}
