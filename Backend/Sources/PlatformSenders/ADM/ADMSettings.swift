package import HTTPMessages

/// A hub's credentials at Amazon (a security profile of the developer console).
package struct ADMSettings: Sendable, Equatable {
    package let clientID: String
    package let clientSecret: String
    package let tokenURL: HTTPURL
    /// True towards a gateway of our own, which drops repeats by it.
    package let sendsDeliveryID: Bool
    /// What stands before and behind the registration id.
    private let sendURL: (before: String, after: String)

    package static let tokenURLDefault = "https://api.amazon.com/auth/O2/token"
    package static let sendURLDefault = "https://api.amazon.com/messaging/registrations/{0}/messages"
    private static let amazonHost = "api.amazon.com"

    /// A template that makes no URL.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// - Parameter sendURL: With `{0}` in the place of the registration id. Another host than Amazon's is a gateway of our own.
    package init(
        clientID: String,
        clientSecret: String,
        tokenURL: HTTPURL,
        sendURL: String = Self.sendURLDefault
    ) throws(Failure) {
        // The origin stands before the id: no id, which a client chose, can lead the token elsewhere.
        guard let place = sendURL.firstRange(of: "{0}"),
            case let (before, after) = (
                String(sendURL[..<place.lowerBound]), String(sendURL[place.upperBound...])
            ),
            let origin = HTTPURL(before)?.origin, let sample = HTTPURL(before + "0" + after),
            sample.origin == origin
        else {
            throw Failure(
                description:
                    "'\(sendURL)' is not an http or https URL with {0} in the place of the registration id"
            )
        }
        self.clientID = clientID
        self.clientSecret = clientSecret
        self.tokenURL = tokenURL
        sendsDeliveryID = sample.host != Self.amazonHost
        self.sendURL = (before, after)
    }

    /// The address of a registration id, which comes from a client and stays within its path segment.
    func address(_ registrationID: String) -> HTTPURL? {
        HTTPURL(sendURL.before + PercentEncoding.encode(registrationID) + sendURL.after)
    }

    package static func == (left: ADMSettings, right: ADMSettings) -> Bool {
        (left.clientID, left.clientSecret, left.tokenURL) == (
            right.clientID, right.clientSecret, right.tokenURL
        ) && left.sendURL == right.sendURL
    }
}
