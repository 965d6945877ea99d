import Glibc

/// User and system time in seconds (getrusage(2)), finer than the clock ticks of `/proc`.
enum CPUTime {
    static var ofThisProcess: Double { seconds(RUSAGE_SELF) }
    /// Of all children that ended and were waited for.
    static var ofEndedChildren: Double { seconds(RUSAGE_CHILDREN) }

    private static func seconds(_ whose: __rusage_who) -> Double {
        var usage = rusage()
        getrusage(whose.rawValue, &usage)
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    private static func seconds(_ time: timeval) -> Double {
        Double(time.tv_sec) + Double(time.tv_usec) / 1e6
    }
}
