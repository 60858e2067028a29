//! Small matrices between shared memory and the registers of a warp.

use super::fragment::Fragment;
use crate::ir::*;
use crate::op::Check;
use crate::op::{Convergence, instruction, modifiers};

modifiers! {
    /// Rows and columns of one matrix.
    pub enum TileShape {
        /// 8 × 8 elements of 16 bits.
        M8N8 = "m8n8",
        /// 8 × 16 elements, widened to 8 bits.
        M8N16 = "m8n16",
        /// 16 × 16 elements of 8 bits.
        M16N16 = "m16n16",
        /// 16 × 8 elements of 8 bits.
        M16N8 = "m16n8",
    }

    /// Number of matrices.
    pub enum MatrixCount {
        /// One.
        X1 = "x1",
        /// Two.
        X2 = "x2",
        /// Four.
        X4 = "x4",
    }

    /// Elements of a matrix.
    pub enum MatrixElement {
        /// 16 bits.
        B16 = "b16",
        /// 8 bits.
        B8 = "b8",
        /// 16 elements of 8 bits in registers; the source format gives their type in memory.
        B8x16 = "b8x16",
        /// Signed, 8 bits in registers.
        S8 = "s8",
    }

    /// Elements in memory that are widened by the load.
    pub enum PackedElement {
        /// 16 elements of 6 bits and 32 bits of padding.
        B6x16P32 = "b6x16_p32",
        /// 16 elements of 4 bits and 64 bits of padding.
        B4x16P64 = "b4x16_p64",
        /// Signed, 4 bits.
        S4 = "s4",
    }
}

impl MatrixCount {
    /// The number.
    pub const fn count(self) -> u32 {
        match self {
            MatrixCount::X1 => 1,
            MatrixCount::X2 => 2,
            MatrixCount::X4 => 4,
        }
    }
}

instruction! {
    /// Loads matrices from shared memory; each lane provides the address of a row.
    pub struct Ldmatrix("ldmatrix.sync.aligned") {
        shape: TileShape,
        num: MatrixCount,
        trans: bool = "trans",
        space: Option<Space>,
        element: MatrixElement,
        source: Option<PackedElement>,
    }(r: Dsts, p: Address) -> unknown,
        needs: |op, needs| {
            needs.both("`ldmatrix`", (6, 5), 75);
            space_needs(needs, op.space);
            if op.element == MatrixElement::S8 {
                needs.targets(
                    "`ldmatrix` of `.s4`",
                    (9, 4),
                    Requirement::Specific { specific: &[90], family: &[100, 110, 120] },
                );
            } else if op.element != MatrixElement::B16 {
                needs.targets("`ldmatrix` of elements of eight bits and fewer", (8, 6), NARROW);
            }
        },
        convergence: |_| Convergence::Warp,
        check: |op, check| {
            use MatrixElement::*;
            let fits = match (op.shape, op.element, op.source) {
                (TileShape::M8N8, B16, None) => true,
                (TileShape::M16N16, B8, None) => true,
                (TileShape::M8N16 | TileShape::M16N16, B8x16, Some(source)) => source != PackedElement::S4,
                (TileShape::M8N16, S8, Some(PackedElement::S4)) => true,
                _ => false,
            };
            check.combination(
                fits,
                "the forms are `.m8n8` of `.b16`, `.m16n16` of `.b8`, `.m8n16` or `.m16n16` of `.b8x16` from `.b6x16_p32` or `.b4x16_p64`, and `.m8n16` of `.s8` from `.s4`",
            );
            match op.shape {
                TileShape::M16N16 => {
                    check.combination(op.trans, "`.m16n16` needs `.trans`");
                    check.combination(op.num != MatrixCount::X4, "`.m16n16` takes `.x1` or `.x2`");
                }
                TileShape::M8N16 => check.combination(!op.trans, "`.m8n16` does not take `.trans`"),
                _ => {}
            }
            space(check, op.space);
            if fits {
                op.fragment().check_dsts(check, "r", &op.r);
            }
            check.address("p", &op.p, op.space);
        };

    /// Stores matrices to shared memory; each lane provides the address of a row.
    pub struct Stmatrix("stmatrix.sync.aligned") {
        shape: TileShape,
        num: MatrixCount,
        trans: bool = "trans",
        space: Option<Space>,
        element: MatrixElement,
    }(p: Address, r: Srcs) -> nothing,
        needs: |op, needs| {
            needs.both("`stmatrix`", (7, 8), 90);
            space_needs(needs, op.space);
            if op.element == MatrixElement::B8 {
                needs.targets("`stmatrix` of `.b8`", (8, 6), NARROW);
            }
        },
        convergence: |_| Convergence::Warp,
        check: |op, check| {
            check.combination(
                match (op.shape, op.element) {
                    (TileShape::M8N8, MatrixElement::B16) => true,
                    (TileShape::M16N8, MatrixElement::B8) => op.trans,
                    _ => false,
                },
                "the forms are `.m8n8` of `.b16`, and `.m16n8` of `.b8` with `.trans`",
            );
            space(check, op.space);
            check.wide_address("p", &op.p, op.space);
            op.fragment().check_srcs(check, "r", &op.r);
        };

    /// Transposes a matrix across the lanes of the warp.
    pub struct Movmatrix("movmatrix.sync.aligned") {
        shape: TileShape,
        trans: bool = "trans",
        element: MatrixElement,
    }(d: Dst, a: RegSrc) -> unknown,
        needs: |_, needs| needs.both("`movmatrix`", (7, 8), 75),
        convergence: |_| Convergence::Warp,
        check: |op, check| {
            check.combination(
                op.shape == TileShape::M8N8 && op.trans && op.element == MatrixElement::B16,
                "the only form is `.m8n8.trans.b16`",
            );
            check.dst("d", op.d, Type::B32);
            check.reg("a", op.a.0, Type::B32);
        };
}

/// Targets that have the forms with elements of eight bits and fewer.
const NARROW: Requirement = Requirement::family(&[100, 110, 120]);

fn space(check: &mut Check<'_>, space: Option<Space>) {
    check.combination(
        matches!(space, None | Some(Space::Shared | Space::SharedCta)),
        "the matrices are in `.shared` or `.shared::cta`",
    );
}

fn space_needs(needs: &mut Needs, space: Option<Space>) {
    needs.version_if(space == Some(Space::SharedCta), "`::cta`", 7, 8);
}

impl Ldmatrix {
    /// The registers of a lane.
    pub fn fragment(&self) -> Fragment {
        let matrix = if self.shape == TileShape::M16N16 { 2 } else { 1 };
        Fragment { register: Type::B32, count: matrix * self.num.count() }
    }
}

impl Stmatrix {
    /// The registers of a lane.
    pub fn fragment(&self) -> Fragment {
        Fragment { register: Type::B32, count: self.num.count() }
    }
}
