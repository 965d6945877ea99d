import CTidingsRoaring

/// A set of registration numbers; owns the CRoaring bitmap.
struct Bitmap: ~Copyable {
    let pointer: UnsafeMutablePointer<roaring_bitmap_t>

    /// An empty set.
    init() { self.init(owning: roaring_bitmap_create()) }

    init(owning pointer: UnsafeMutablePointer<roaring_bitmap_t>?) {
        guard let pointer else { fatalError("out of memory for a bitmap") }
        self.pointer = pointer
    }

    deinit { roaring_bitmap_free(pointer) }

    func copy() -> Bitmap { Bitmap(owning: roaring_bitmap_copy(pointer)) }
    func formUnion(_ other: borrowing Bitmap) { roaring_bitmap_or_inplace(pointer, other.pointer) }
    func formIntersection(_ other: borrowing Bitmap) { roaring_bitmap_and_inplace(pointer, other.pointer) }
    func subtract(_ other: borrowing Bitmap) { roaring_bitmap_andnot_inplace(pointer, other.pointer) }
    func insert(_ number: UInt32) { roaring_bitmap_add(pointer, number) }
    func remove(_ number: UInt32) { roaring_bitmap_remove(pointer, number) }
    var count: Int { Int(roaring_bitmap_get_cardinality(pointer)) }

    /// Gives the bitmap away.
    consuming func release() -> UnsafeMutablePointer<roaring_bitmap_t> {
        let pointer = pointer
        discard self
        return pointer
    }
}
