/// A moment in UTC, in whole milliseconds since 1970-01-01T00:00:00Z.
public struct Timestamp: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Milliseconds since the Unix epoch.
    public var milliseconds: Int64

    /// A moment given in milliseconds.
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }
    /// A moment given in seconds.
    public init(seconds: Int64) { milliseconds = seconds * 1000 }

    /// Whole seconds since the Unix epoch, rounded down.
    public var seconds: Int64 { milliseconds >= 0 ? milliseconds / 1000 : (milliseconds - 999) / 1000 }

    /// `never` as the hub protocol writes it: 9999-12-31T23:59:59.999Z.
    public static let never = Timestamp(milliseconds: 253_402_300_799_999)

    /// Earlier before later.
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.milliseconds < right.milliseconds
    }
    /// The moment after a span.
    public static func + (moment: Timestamp, span: Duration) -> Timestamp {
        let (seconds, attoseconds) = span.components
        return Timestamp(
            milliseconds: moment.milliseconds + seconds * 1000 + attoseconds / 1_000_000_000_000_000
        )
    }
    /// The span from `right` to `left`.
    public static func - (left: Timestamp, right: Timestamp) -> Duration {
        .milliseconds(left.milliseconds - right.milliseconds)
    }

    /// RFC 3339 with three fraction digits and `Z`.
    public var description: String {
        let (year, month, day) = civil
        let time = secondOfDay
        let fraction = Int(milliseconds - seconds * 1000)
        return
            "\(pad(year, 4))-\(pad(month, 2))-\(pad(day, 2))T\(pad(time / 3600, 2)):\(pad(time / 60 % 60, 2))"
            + ":\(pad(time % 60, 2)).\(pad(fraction, 3))Z"
    }

    /// `yyyyMMddHHmmss`, as it stands in notification ids.
    package var compact: String {
        let (year, month, day) = civil
        let time = secondOfDay
        return
            "\(pad(year, 4))\(pad(month, 2))\(pad(day, 2))\(pad(time / 3600, 2))\(pad(time / 60 % 60, 2))\(pad(time % 60, 2))"
    }

    /// `M/D/YYYY h:mm:ss AM`, as it stands in the hub's error bodies.
    package var american: String {
        let (year, month, day) = civil
        let time = secondOfDay
        let hour = time / 3600
        let twelve = hour % 12 == 0 ? 12 : hour % 12
        return
            "\(month)/\(day)/\(year) \(twelve):\(pad(time / 60 % 60, 2)):\(pad(time % 60, 2)) \(hour < 12 ? "AM" : "PM")"
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 section 5.6.7).
    package var httpDate: String {
        let (year, month, day) = civil
        let time = secondOfDay
        let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let weekday = Int(((dayNumber % 7) + 7) % 7)
        return "\(days[weekday]), \(pad(day, 2)) \(months[month - 1]) \(year) "
            + "\(pad(time / 3600, 2)):\(pad(time / 60 % 60, 2)):\(pad(time % 60, 2)) GMT"
    }

    /// The first moment of year 1, `DateTime.MinValue` of .NET: the earliest that is read.
    private static let earliest = Timestamp(milliseconds: -62_135_596_800_000)

    /// Reads `2030-01-02T10:20[:30[.fff…]]` followed by `Z`, `±hh:mm`, `±hhmm` or nothing (UTC).
    ///
    /// Nil also for a moment outside of the years 1 to 9999, which ``description`` could not write in this form.
    public init?(parsing text: String) {
        var scanner = DigitScanner(text)
        guard let year = scanner.number(4), scanner.skip("-"), let month = scanner.number(2),
            scanner.skip("-"),
            let day = scanner.number(2), scanner.skip("T") || scanner.skip("t") || scanner.skip(" "),
            let hour = scanner.number(2), scanner.skip(":"), let minute = scanner.number(2)
        else { return nil }
        var second = 0
        var fraction = 0
        if scanner.skip(":") {
            guard let value = scanner.number(2) else { return nil }
            second = value
            if scanner.skip(".") {
                guard let value = scanner.fraction() else { return nil }
                fraction = value
            }
        }
        guard let offset = scanner.zone(), scanner.isAtEnd, (1...12).contains(month),
            (1...Self.days(in: month, of: year)).contains(day), hour < 24, minute < 60, second < 61
        else { return nil }
        let clock = Int64(hour * 3600 + minute * 60 + min(second, 59)) - Int64(offset * 60)
        milliseconds =
            (Self.dayNumber(year: year, month: month, day: day) * 86400 + clock) * 1000 + Int64(fraction)
        guard self >= Self.earliest, self <= .never else { return nil }
    }

    /// A moment given by its parts in UTC; nil for a date that does not exist.
    package init?(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) {
        guard (1...9999).contains(year), (1...12).contains(month),
            (1...Self.days(in: month, of: year)).contains(day),
            (0..<24).contains(hour), (0..<60).contains(minute), (0..<60).contains(second)
        else { return nil }
        let clock = Int64(hour * 3600 + minute * 60 + second)
        milliseconds = (Self.dayNumber(year: year, month: month, day: day) * 86400 + clock) * 1000
    }

    private var dayNumber: Int64 { seconds >= 0 ? seconds / 86400 : (seconds - 86399) / 86400 }
    private var secondOfDay: Int { Int(seconds - dayNumber * 86400) }

    /// Year, month and day of the proleptic Gregorian calendar, counted in years that begin in March so that
    /// the leap day comes last.
    private var civil: (year: Int, month: Int, day: Int) {
        let shifted = dayNumber + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (
            Int(yearOfEra + era * 400) + (month <= 2 ? 1 : 0), Int(month),
            Int(dayOfYear - (153 * marchMonth + 2) / 5 + 1)
        )
    }

    private static func dayNumber(year: Int, month: Int, day: Int) -> Int64 {
        let shifted = Int64(month <= 2 ? year - 1 : year)
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = Int64((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1)
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func days(in month: Int, of year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}

private func pad(_ number: Int, _ width: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
}

/// Reads fixed-width numbers and signs.
private struct DigitScanner {
    private var rest: Substring.UTF8View

    init(_ text: String) { rest = text[...].utf8 }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func skip(_ character: Character) -> Bool {
        guard let byte = rest.first, byte == character.asciiValue else { return false }
        rest = rest.dropFirst()
        return true
    }

    mutating func number(_ width: Int) -> Int? {
        guard rest.count >= width else { return nil }
        var value = 0
        for byte in rest.prefix(width) {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            value = value * 10 + Int(byte - UInt8(ascii: "0"))
        }
        rest = rest.dropFirst(width)
        return value
    }

    /// One or more digits as milliseconds; digits after the third are dropped.
    mutating func fraction() -> Int? {
        var value = 0
        var count = 0
        while let byte = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
            if count < 3 { value = value * 10 + Int(byte - UInt8(ascii: "0")) }
            count += 1
            rest = rest.dropFirst()
        }
        guard count > 0 else { return nil }
        for _ in min(count, 3)..<3 { value *= 10 }
        return value
    }

    /// The offset in minutes; 0 for `Z` and for no zone.
    mutating func zone() -> Int? {
        if isAtEnd || skip("Z") || skip("z") { return 0 }
        let sign: Int
        if skip("+") { sign = 1 } else if skip("-") { sign = -1 } else { return nil }
        guard let hours = number(2), hours < 24 else { return nil }
        _ = skip(":")
        guard let minutes = number(2), minutes < 60 else { return nil }
        return sign * (hours * 60 + minutes)
    }
}
