/// What the vectors of several SDKs send.
enum SDKBody {
    static let atom = "http://www.w3.org/2005/Atom"
    static let connect = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
    static let instance = "http://www.w3.org/2001/XMLSchema-instance"
    static let token = "AB12CD34EF56AB12CD34EF56AB12CD34EF56AB12CD34EF56AB12CD34EF56AB12"
    static let channel = "https://a.notify.windows.com/?token=x"

    // MARK: Payloads

    static let apple = #"{"aps":{"alert":"plums"}}"#
    static let google = #"{"data":{"message":"plums"}}"#
    static let googleV1 = #"{"message":{"data":{"message":"plums"}}}"#
    static let baidu = #"{"title":"plums","description":"ripe"}"#
    static let flat = #"{"headline":"Frost tonight","badge":"3"}"#
    static let toast =
        #"<toast><visual><binding template="ToastText01"><text id="1">å</text></binding></visual></toast>"#
    static let phoneToast =
        #"<wp:Notification xmlns:wp="WPNotification"><wp:Toast><wp:Text1>å</wp:Text1></wp:Toast></wp:Notification>"#

    static let appleTemplate = #"{"aps":{"alert":"$(headline)"}}"#
    static let googleTemplate = #"{"data":{"message":"$(headline)"}}"#
    static let googleV1Template = #"{"message":{"data":{"message":"$(headline)"}}}"#
    static let flatTemplate = #"{"title":"$(headline)"}"#
    static let toastTemplate =
        #"<toast><visual><binding template="ToastText01"><text id="1">$(headline)</text></binding></visual></toast>"#
    static let phoneTemplate =
        #"<wp:Notification xmlns:wp="WPNotification"><wp:Toast><wp:Text1>$(headline)</wp:Text1></wp:Toast></wp:Notification>"#

    // MARK: Elements of descriptions

    static func template(_ body: String) -> String { "<BodyTemplate><![CDATA[\(body)]]></BodyTemplate>" }

    static let deviceToken = "<DeviceToken>\(token)</DeviceToken>"
    static let channelURI = "<ChannelUri>\(channel)</ChannelUri>"
    static let baiduIDs = "<BaiduUserId>u1</BaiduUserId><BaiduChannelId>c1</BaiduChannelId>"
    static let name = "<TemplateName>plum</TemplateName>"

    static func headers(_ prefix: String, _ pairs: KeyValuePairs<String, String>) -> String {
        let items = pairs.map {
            "<\(prefix)Header><Header>\($0.key)</Header><Value>\($0.value)</Value></\(prefix)Header>"
        }
        return "<\(prefix)Headers>\(items.joined())</\(prefix)Headers>"
    }

    static let toastHeader = headers("Wns", ["X-WNS-Type": "wns/toast"])
    static let phoneHeaders = headers(
        "Mpns",
        ["X-WindowsPhone-Target": "toast", "X-NotificationClass": "2"]
    )
    static let appleHeaders = headers("Apns", ["apns-push-type": "alert", "apns-priority": "10"])

    // MARK: Batches

    /// The two parts of a batch.
    /// - Parameter type: The header line of each part before its disposition, with its line end.
    static func batch(boundary: String, type: String) -> String {
        let start = "--\(boundary)\r\n\(type)Content-Disposition: inline; name="
        return
            "\(start)notification\r\n\r\n\(apple)\r\n\(start)devices\r\n\r\n[\"\(token)\",\"EF56AB12\"]\r\n"
            + "--\(boundary)--\r\n"
    }
}

/// A registration description as an SDK writes its members, and as the hub answers them.
struct SDKDescription: Sendable {
    /// `Apple`, `AppleTemplate` and so on.
    let type: String
    let written: String
    let read: String

    init(_ type: String, _ written: String, read: String? = nil) {
        self.type = type
        self.written = written
        self.read = read ?? written
    }

    var root: String { type + "RegistrationDescription" }
}
