//! Decimal digits of numbers, written with one division per two digits.

/// `00` to `99`, two characters each.
const PAIRS: [u8; 200] = pairs();

const fn pairs() -> [u8; 200] {
    let mut pairs = [0; 200];
    let mut n = 0;
    while n < 100 {
        pairs[2 * n] = b'0' + (n / 10) as u8;
        pairs[2 * n + 1] = b'0' + (n % 10) as u8;
        n += 1;
    }
    pairs
}

/// Writes `number` in decimal at the end of `digits`, which contains only `0`.
///
/// Digits that do not fit are cut off on the left: 12345 in three bytes is `345`.
#[inline]
pub fn write_over_zeros(digits: &mut [u8], mut number: u64) {
    let mut end = digits.len();
    while number > 0 && end >= 2 {
        let at = 2 * (number % 100) as usize;
        digits[end - 2..end].copy_from_slice(&PAIRS[at..at + 2]);
        number /= 100;
        end -= 2;
    }
    if number > 0 && end == 1 {
        digits[0] = b'0' + (number % 10) as u8;
    }
}
