import CTidingsUV

/// What the allocator keeps.
package enum Memory {
    /// Gives what is free, in the middle of the heap as well, back to the kernel (malloc_trim(3)). Bursts on many threads leave each of
    /// glibc's arenas at its own peak: without this, resident memory becomes several times what is in use. Takes milliseconds,
    /// so it is work for the worker pool.
    package static func trim() { tidings_uv_trim_memory() }
}
