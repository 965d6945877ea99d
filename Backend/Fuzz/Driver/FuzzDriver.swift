import FuzzTargets
import Glibc

/// `tidings-fuzz TARGET [CORPUS...] [-option=value...]`: libFuzzer's own options behind the name of a reader.
private enum FuzzDriver {
    /// Set before the first input, on the one thread that libFuzzer uses.
    nonisolated(unsafe) static var check: @Sendable ([UInt8]) -> String? = { _ in "no target" }
}

/// libFuzzer calls this before it reads its options (https://llvm.org/docs/LibFuzzer.html, "Startup initialization").
@_cdecl("LLVMFuzzerInitialize")
func fuzzerInitialize(
    _ count: UnsafeMutablePointer<Int32>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>
) -> Int32 {
    // For merges and jobs libFuzzer starts this program again without the name: it is inherited.
    let variable = "TIDINGS_FUZZ_READER"
    if let inherited = getenv(variable), let target = FuzzTarget.named(String(cString: inherited)) {
        FuzzDriver.check = target.check
        return 0
    }
    guard count.pointee >= 2, let name = arguments.pointee[1],
        let target = FuzzTarget.named(String(cString: name))
    else {
        print("usage: tidings-fuzz TARGET [CORPUS...] [-max_total_time=SECONDS]")
        print("targets: \(FuzzTarget.all.map(\.name).joined(separator: " "))")
        exit(64)
    }
    setenv(variable, target.name, 1)
    FuzzDriver.check = target.check
    // The name is ours; what is left is libFuzzer's.
    arguments.pointee[1] = arguments.pointee[0]
    arguments.pointee += 1
    count.pointee -= 1
    return 0
}

@_cdecl("LLVMFuzzerTestOneInput")
func fuzzerTestOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    if let problem = FuzzDriver.check(Array(UnsafeBufferPointer(start: bytes, count: count))) {
        fatalError(problem)
    }
    return 0
}
