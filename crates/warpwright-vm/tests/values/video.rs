//! Video instructions.

use super::{check, s};

#[test]
fn scalar() {
    check(&[
        ("vadd.s32.u32.s32 r0, r1.b1, r2.h1", &[0x1234_ff78, 0x8001_0000], s(255 - 0x7fff)),
        ("vadd.u32.u32.u32.sat r0, r1, r2", &[0xffff_ffff, 2], 0xffff_ffff),
        ("vsub.u32.u32.u32.sat r0, r1, r2", &[1, 2], 0),
        ("vabsdiff.s32.s32.s32.add r0, r1, r2, r3", &[s(-3), 10, 100], 113),
        ("vadd.s32.s32.s32.sat r0.b1, r1, r2, r3", &[100, 100, 0x1111_1111], 0x1111_7f11),
        ("vadd.u32.u32.u32 r0.h1, r1, r2, r3", &[0x1_0001, 1, 7], 0x0002_0007),
        ("vmin.s32.s32.u32 r0, r1, r2", &[s(-1), 0xffff_ffff], s(-1)),
        ("vmax.s32.s32.s32.min r0, r1, r2, r3", &[5, 6, 3], 3),
        ("vshl.u32.u32.u32.wrap r0, r1, r2", &[1, 33], 2),
        ("vshl.u32.u32.u32.sat.clamp r0, r1, r2", &[1, 33], 0xffff_ffff),
        // Of the 34 bits the highest is the sign.
        ("vshl.u32.s32.u32.sat.clamp r0, r1, r2", &[0x8101_8101, 32], 0xffff_ffff),
        ("vshl.u32.u32.u32.sat.clamp r0, r1, r2", &[0x7f7f_7f7f, 32], 0),
        ("vshl.s32.u32.u32.sat.clamp r0, r1, r2", &[0x7f7f_7f7f, 32], 0x8000_0000),
        ("vshl.s32.s32.u32.sat.wrap r0, r1, r2", &[0xffff_ffbf, 30], 0xc000_0000),
        // A second comparison is between words of the destination's type.
        ("vadd.u32.u32.u32.min r0, r1, r2, r3", &[0xffff_ffff, 0x7fff_ffff, 0x0101_0101], 0x0101_0101),
        ("vadd.s32.u32.u32.min r0, r1, r2, r3", &[0xffff_ffff, 0x7fff_ffff, 0x0101_0101], 0x0101_0101),
        ("vadd.s32.s32.s32.min r0, r1, r2, r3", &[0x7f7f_7f7f, 0x7f7f_7f7f, 0x1234_5678], 0xfefe_fefe),
        ("vmin.u32.u32.s32.max r0, r1, r2, r3", &[0xffff_ffff, 0x8000_0000, 0x7fff_ffff], 0x8000_0000),
        // But all of what is no sum counts, if that type is signed.
        ("vmin.s32.u32.u32.min r0, r1, r2, r3", &[0x8000_0001, 0x9000_0000, 5], 5),
        ("vabsdiff.s32.u32.s32.max r0, r1, r2, r3", &[0xffff_ffff, 0x8000_0010, 0x7fff_ffff], 0x7fff_ffef),
        ("vshr.s32.s32.u32.clamp r0, r1.b0, r2", &[0x80, 3], s(-16)),
        ("vset.s32.u32.lt r0, r1, r2", &[s(-1), 1], 1),
        ("vset.u32.u32.ge.add r0, r1, r2, r3", &[3, 3, 41], 42),
        ("vmad.u32.u32.u32 r0, r1, r2, r3", &[3, 4, 5], 17),
        ("vmad.s32.s32.s32 r0, -r1, r2, r3", &[3, 4, 5], s(-7)),
        ("vmad.u32.u32.u32 r0, r1, r2, -r3", &[3, 4, 5], 7),
        ("vmad.u32.u32.u32.po.shr7 r0, r1.b0, r2.b0, r3", &[255, 1, 0], 2),
        ("vmad.s32.s32.s32.sat r0, r1, r2, r3", &[0x7fff_ffff, 0x7fff_ffff, 0], 0x7fff_ffff),
    ]);
}

#[test]
fn simd() {
    check(&[
        ("vadd2.u32.u32.u32 r0, r1, r2, r3", &[0xffff_0001, 0x0001_0001, 0], 0x0000_0002),
        ("vadd2.s32.s32.s32.sat r0, r1, r2, r3", &[0x7fff_8000, 0x0001_ffff, 0], 0x7fff_8000),
        ("vadd2.u32.u32.u32 r0.h0, r1, r2, r3", &[0x0005_0001, 0x0001_0001, 0xabcd_0000], 0xabcd_0002),
        ("vadd2.u32.u32.u32.add r0.h10, r1.h32, r2.h32, r3", &[0, 0x0003_0004, 1], 15),
        ("vsub4.s32.s32.s32 r0, r1, r2, r3", &[0x0102_0304, 0x0202_0202, 0], 0xff00_0102),
        ("vavrg4.u32.u32.u32 r0, r1, r2, r3", &[0x01ff_0003, 0x02ff_0004, 0], 0x02ff_0004),
        ("vabsdiff4.u32.u32.u32.add r0, r1, r2, r3", &[0x0105_0900, 0x0501_0009, 0], 4 + 4 + 9 + 9),
        ("vmin4.s32.s32.s32 r0, r1, r2, r3", &[0xff01_7f80, 0x0000_0000, 0], 0xff00_0080),
        ("vmax2.u32.u32.u32 r0, r1, r2, r3", &[0xff01_7f80, 0x0000_ffff, 0], 0xff01_ffff),
        ("vset4.u32.u32.lt r0, r1, r2, r3", &[0x0102_0304, 0x0202_0404, 0], 0x0100_0100),
        ("vset2.s32.s32.ne.add r0, r1, r2, r3", &[0x0001_0002, 0x0001_0003, 10], 11),
        (
            "vadd4.u32.u32.u32 r0.b20, r1.b7531, r2.b0000, r3",
            &[0x0400_0302, 0x0800_0706, 9 << 8],
            0x0009_0905,
        ),
    ]);
}
