import CTidingsRoaring
import HubCore

/// The numbers of one send. Immutable after it is made, so that its blocks may be read from several tasks.
final class RoaringAudience: Audience, @unchecked Sendable {
    private let bitmap: UnsafeMutablePointer<roaring_bitmap_t>
    let change: Int64
    let count: Int

    init(_ bitmap: consuming Bitmap, change: Int64) {
        count = bitmap.count
        self.bitmap = bitmap.release()
        self.change = change
    }

    deinit { roaring_bitmap_free(bitmap) }

    func contains(_ number: UInt32) -> Bool { roaring_bitmap_contains(bitmap, number) }

    func numbers(after: UInt32?, countMax: Int) -> [UInt32] {
        if after == .max { return [] }
        guard let iterator = roaring_create_iterator(bitmap) else { return [] }
        defer { roaring_free_uint32_iterator(iterator) }
        if let after, !roaring_move_uint32_iterator_equalorlarger(iterator, after + 1) { return [] }
        return [UInt32](unsafeUninitializedCapacity: countMax) { buffer, count in
            guard let base = buffer.baseAddress else { return }
            count = Int(roaring_read_uint32_iterator(iterator, base, UInt32(clamping: countMax)))
        }
    }

    var serialized: [UInt8] {
        let count = roaring_bitmap_portable_size_in_bytes(bitmap)
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
            guard let base = buffer.baseAddress else { return }
            written = base.withMemoryRebound(to: CChar.self, capacity: count) {
                roaring_bitmap_portable_serialize(bitmap, $0)
            }
        }
    }

    /// Nil when the bytes are no bitmap.
    static func restore(_ bytes: [UInt8], change: Int64) -> RoaringAudience? {
        let bitmap = bytes.withUnsafeBytes { buffer in
            roaring_bitmap_portable_deserialize_safe(
                buffer.baseAddress?.assumingMemoryBound(to: CChar.self),
                buffer.count
            )
        }
        guard let bitmap else { return nil }
        return RoaringAudience(Bitmap(owning: bitmap), change: change)
    }
}
