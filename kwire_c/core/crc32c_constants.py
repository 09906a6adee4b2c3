"""Print crc32c_constants.h: the folding constants of CRC-32C, computed from the polynomial alone, and tables.

Run: python kwire_c/core/crc32c_constants.py > kwire_c/core/crc32c_constants.h
"""

POLYNOMIAL = 0x1EDC6F41  # x^32 is implied; bit i is x^i
REFLECTED = 0x82F63B78  # the same with bit i as x^(31-i), the order of the bits in the checksum
TABLES = {"crc32c": REFLECTED, "crc32": 0xEDB88320}  # of CRC-32 (IEEE 802.3) too, the checksum of magic 0 and 1

# The joined kernels: a block is N rounds of three streams for the crc32 instruction, 24 bytes a round each,
# and for pclmul a vector part of 64 bytes a round before them. Longest first: a long input takes the largest that fits.
ROUNDS = {"pclmul": (120, 28, 7), "pmull": (170, 40, 10)}


def reflect(value: int, width: int = 32) -> int:
    """The value with its bits in reverse order."""
    return int(f"{value:0{width}b}"[::-1], 2)


def power_of_x(exponent: int) -> int:
    """x^exponent modulo the polynomial, reflected, by repeated squaring; exponent >= 0."""
    result, square = 1, 2
    while exponent:
        if exponent & 1:
            result = _multiply(result, square)
        square = _multiply(square, square)
        exponent >>= 1
    return reflect(result)


def _multiply(a: int, b: int) -> int:
    product = 0
    for bit in range(32):
        if b >> bit & 1:
            product ^= a << bit
    for bit in range(62, 31, -1):
        if product >> bit & 1:
            product ^= (1 << 32 | POLYNOMIAL) << (bit - 32)
    return product


def fold(size: int) -> tuple[int, int]:
    """Two multipliers, for the low and the high eight bytes of a 16-byte lane moved size bytes forward.

    A reflected product of two words whose 32-bit values are in their low halves is x^33 too high.
    """
    return power_of_x(8 * size + 64 - 33), power_of_x(8 * size - 33)


def shift(size: int) -> int:
    """The multiplier that moves a checksum size bytes forward (a crc32 instruction reduces the product)."""
    return power_of_x(8 * size - 33)


def tables(polynomial: int) -> list[list[int]]:
    """Slicing-by-8: entry [k][b] is the checksum of byte b followed by k zero bytes. polynomial: reflected."""
    first = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
        first.append(value)
    result = [first]
    for _ in range(7):
        result.append([value >> 8 ^ first[value & 255] for value in result[-1]])
    return result


def header() -> str:
    """The text of crc32c_constants.h."""
    lines = [
        "/* Written by crc32c_constants.py, which explains them: do not edit. */",
        "#ifndef KWIRE_CRC32C_CONSTANTS_H",
        "#define KWIRE_CRC32C_CONSTANTS_H",
        "",
        "#include <stdint.h>",
        "",
        "/* Folding a 16-byte lane forward by this many bytes: multipliers of its low and high half. */",
    ]
    for size in (16, 32, 48, 64, 128, 256):
        low, high = fold(size)
        lines.append(f"#define KW_FOLD_{size} 0x{low:08x}u, 0x{high:08x}u")
    lines += ["", "/* Joined kernels: rounds, multipliers over one, two and three streams of 24 * rounds bytes. */"]
    for name, rounds in ROUNDS.items():
        lines.append(f"#define KW_JOINS_{name.upper()} \\")
        rows = [(n, ", ".join(f"0x{shift(24 * n * streams):08x}u" for streams in (1, 2, 3))) for n in rounds]
        lines.append(", \\\n".join(f"    {{{n}, {{{multipliers}}}}}" for n, multipliers in rows))
    for name, polynomial in TABLES.items():
        lines += ["", f"static const uint32_t kw_{name}_table[8][256] = {{"]
        for table in tables(polynomial):
            lines.append("    {")
            for at in range(0, 256, 8):
                lines.append("        " + ", ".join(f"0x{value:08x}" for value in table[at : at + 8]) + ",")
            lines.append("    },")
        lines.append("};")
    lines += ["", "#endif"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(header(), end="")
