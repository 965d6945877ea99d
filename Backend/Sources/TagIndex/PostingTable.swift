import CTidingsRoaring

/// Tags to registration numbers: open addressing over a keyed hash of the tag, up to four numbers in place or beside,
/// then a bitmap. No tag text is kept.
///
/// Two tags with one fingerprint share a slot, which is then marked as mixed: its numbers are an upper bound for
/// either tag and no lower bound. Owns its memory and its bitmaps; used under the index's lock.
struct PostingTable: ~Copyable {
    /// 16 bytes. An empty slot has key 0; a deleted one keeps its key and has no numbers.
    private struct Slot {
        var key: UInt64 = 0
        /// The only number, or the index of a side posting.
        var value: UInt32 = 0
        /// The check hash with its lowest two bits replaced by the kind.
        var check: UInt32 = 0

        enum Kind: UInt32 { case none = 0, single = 1, side = 2 }
        var kind: Kind { Kind(rawValue: check & 3) ?? .none }
        mutating func set(_ kind: Kind) { check = check & ~3 | kind.rawValue }
    }

    /// A posting with more than one number.
    private struct Side {
        var numbers: InlineArray<4, UInt32> = .init(repeating: 0)
        var count = 0
        var bitmap: UnsafeMutablePointer<roaring_bitmap_t>?
        var isMixed = false
    }

    private var slots: UnsafeMutablePointer<Slot>
    private var capacity: Int
    private var usedCount = 0
    private var sides: [Side] = []
    private var freeSides: [UInt32] = []
    private let seed: UInt64
    private let fingerprintMask: UInt64

    /// - Parameter fingerprintBits: Fewer than 64 in tests only, to make fingerprints collide.
    init(seed: UInt64, fingerprintBits: Int = 64) {
        capacity = 64
        slots = .allocate(capacity: 64)
        slots.initialize(repeating: Slot(), count: 64)
        self.seed = seed
        fingerprintMask = fingerprintBits >= 64 ? .max : (1 << UInt64(fingerprintBits)) - 1
    }

    deinit {
        // roaring_bitmap_free takes no null pointer.
        for side in sides { if let bitmap = side.bitmap { roaring_bitmap_free(bitmap) } }
        slots.deallocate()
    }

    private func hash(_ tag: [UInt8]) -> (key: UInt64, check: UInt32) {
        var first = seed ^ 0x9E37_79B9_7F4A_7C15
        var second = ~seed
        for byte in tag {
            first = mix(first ^ UInt64(byte))
            second = mix(second &+ UInt64(byte) &+ 0xD1B5_4A32_D192_ED03)
        }
        // Zero marks an empty slot.
        return (max(1, first & fingerprintMask), UInt32(truncatingIfNeeded: second) & ~3)
    }

    /// The finaliser of SplitMix64.
    private func mix(_ value: UInt64) -> UInt64 {
        var value = value &+ 0x9E37_79B9_7F4A_7C15
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }

    private func find(_ key: UInt64) -> Int {
        var index = Int(truncatingIfNeeded: mix(key)) & (capacity - 1)
        while slots[index].key != 0, slots[index].key != key { index = (index + 1) & (capacity - 1) }
        return index
    }

    mutating func insert(_ tag: [UInt8], _ number: UInt32) {
        if usedCount * 4 >= capacity * 3 { grow() }
        let (key, check) = hash(tag)
        let index = find(key)
        if slots[index].key == 0 {
            slots[index].key = key
            usedCount += 1
        }
        switch slots[index].kind {
        case .none:
            slots[index].check = check
            slots[index].value = number
            slots[index].set(.single)
        case .single:
            let isSameTag = slots[index].check & ~3 == check
            if slots[index].value == number, isSameTag { return }
            var side = Side()
            side.numbers[0] = slots[index].value
            side.count = 1
            side.isMixed = !isSameTag
            Self.add(number, to: &side)
            slots[index].value = store(side)
            slots[index].set(.side)
        case .side:
            let position = Int(slots[index].value)
            if slots[index].check & ~3 != check { sides[position].isMixed = true }
            Self.add(number, to: &sides[position])
        }
    }

    private static func add(_ number: UInt32, to side: inout Side) {
        if let bitmap = side.bitmap { return roaring_bitmap_add(bitmap, number) }
        for index in 0..<side.count where side.numbers[index] == number { return }
        if side.count < 4 {
            side.numbers[side.count] = number
            side.count += 1
            return
        }
        let bitmap = roaring_bitmap_create()
        for index in 0..<4 { roaring_bitmap_add(bitmap, side.numbers[index]) }
        roaring_bitmap_add(bitmap, number)
        side.bitmap = bitmap
    }

    private mutating func store(_ side: Side) -> UInt32 {
        if let free = freeSides.popLast() {
            sides[Int(free)] = side
            return free
        }
        sides.append(side)
        return UInt32(sides.count - 1)
    }

    /// Removes a number from a tag. In a mixed slot another tag may hold the same number, so it stays there: an upper
    /// bound may be too large, never too small.
    mutating func remove(_ tag: [UInt8], _ number: UInt32) {
        let (key, check) = hash(tag)
        let index = find(key)
        guard slots[index].key != 0 else { return }
        switch slots[index].kind {
        case .none: break
        case .single:
            if slots[index].value == number, slots[index].check & ~3 == check { slots[index].set(.none) }
        case .side:
            let position = Int(slots[index].value)
            guard !sides[position].isMixed else { return }
            let isEmpty: Bool
            if let bitmap = sides[position].bitmap {
                roaring_bitmap_remove(bitmap, number)
                isEmpty = roaring_bitmap_is_empty(bitmap)
            } else {
                for place in 0..<sides[position].count where sides[position].numbers[place] == number {
                    sides[position].count -= 1
                    sides[position].numbers[place] = sides[position].numbers[sides[position].count]
                    break
                }
                isEmpty = sides[position].count == 0
            }
            if isEmpty {
                if let bitmap = sides[position].bitmap { roaring_bitmap_free(bitmap) }
                sides[position] = Side()
                freeSides.append(UInt32(position))
                slots[index].set(.none)
            }
        }
    }

    /// Adds a tag's numbers to `bitmap`; true when they are exactly the tag's.
    func addNumbers(_ tag: [UInt8], to bitmap: UnsafeMutablePointer<roaring_bitmap_t>) -> Bool {
        let (key, check) = hash(tag)
        let slot = slots[find(key)]
        guard slot.key != 0 else { return true }
        let isSameTag = slot.check & ~3 == check
        switch slot.kind {
        case .none: return true
        case .single:
            // Another tag's number: nothing of ours.
            if isSameTag { roaring_bitmap_add(bitmap, slot.value) }
            return true
        case .side:
            let side = sides[Int(slot.value)]
            guard isSameTag || side.isMixed else { return true }
            if let numbers = side.bitmap {
                roaring_bitmap_or_inplace(bitmap, numbers)
            } else {
                for index in 0..<side.count { roaring_bitmap_add(bitmap, side.numbers[index]) }
            }
            return !side.isMixed
        }
    }

    private mutating func grow() {
        let old = slots
        let oldCapacity = capacity
        capacity *= 2
        slots = .allocate(capacity: capacity)
        slots.initialize(repeating: Slot(), count: capacity)
        usedCount = 0
        for index in 0..<oldCapacity where old[index].key != 0 && old[index].kind != .none {
            slots[find(old[index].key)] = old[index]
            usedCount += 1
        }
        old.deallocate()
    }
}
