//! What the products on the tensor cores share: the tile of a block, and what is done with its sums.
//!
//! ```text
//!             n: 128 or 64 columns of y, rows of W
//!           ┌────────┬────────┐           ┌──┬──┬──┬──┐
//!   tokens  │ warp 0 │ warp 1 │   or      │w0│w1│w2│w3│  for 64, 32 and 16 tokens
//!    128    ├────────┼────────┤           └──┴──┴──┴──┘
//!           │ warp 2 │ warp 3 │
//!           └────────┴────────┘
//! ```
//!
//! Blocks that follow one another have the same rows of `W` and other tokens, so that weights come out of
//! the L2 cache for all but the first of them.

use crate::data::floats::{Dtype, FloatBuffers, Floats};
use crate::entry::{DTYPES, Domain, Field};
use warpwright_dsl::*;

/// Threads of a block.
pub(crate) const THREADS: u32 = 128;
/// Weights of a row that a tile has.
pub(crate) const DEPTH: u32 = 64;
/// Weights of a row that an instruction takes.
const INNER: usize = 16;

/// The tile of `y` that a block makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockTile {
    /// Tokens: 16, 32, 64 or 128.
    pub(crate) rows: u32,
    /// 64 or 128.
    pub(crate) columns: u32,
}

impl BlockTile {
    /// What the fields `rows` and `columns` must be.
    pub(crate) fn check(self) -> Result<(), BuildError> {
        match (self.rows, self.columns) {
            (16 | 32 | 64 | 128, 64 | 128) => Ok(()),
            (16 | 32 | 64 | 128, columns) => Err(BuildError::field("columns", columns, "64 or 128")),
            (rows, _) => Err(BuildError::field("rows", rows, "16, 32, 64 or 128")),
        }
    }

    /// Rows and columns that a warp makes.
    pub(crate) fn warp(self) -> [u32; 2] {
        if self.rows == 128 { [64, self.columns / 2] } else { [self.rows, self.columns / 4] }
    }

    /// Where the warp's part begins in the tile.
    pub(crate) fn warp_place<'k>(self, k: K<'k>) -> [Reg<'k, u32>; 2] {
        let [rows, columns] = self.warp();
        let across = self.columns / columns;
        [k.warp() / across * rows, k.warp() % across * columns]
    }

    /// Where the block's tile begins in `y`.
    pub(crate) fn place<'k>(self, k: K<'k>) -> [Reg<'k, u32>; 2] {
        [k.ctaid() * self.rows, k.ctaid_y() * self.columns]
    }

    /// The launch rule for `n` columns.
    pub(crate) fn launch(self, n: u32) -> LaunchRule {
        let grid = [
            Extent::dim("tokens").per(self.rows.max(1).into()),
            Extent::new(n.div_ceil(self.columns.max(1)).into()),
            Extent::new(1),
        ];
        LaunchRule { resident_blocks: Some(2), ..LaunchRule::new(THREADS).grid_3d(grid) }
    }

    /// The warp's part of `x · wᵀ` for a tile of each, and each term of `x`; `place` is [`warp_place`]'s.
    ///
    /// [`warp_place`]: Self::warp_place
    pub(crate) fn multiply<'k, T: Factor>(
        self,
        place: [Reg<'k, u32>; 2],
        x: &[SharedTile<'k, T, Ready>],
        w: SharedTile<'k, T, Ready>,
        sums: Tile<'k, Acc, f32>,
    ) -> Tile<'k, Acc, f32> {
        let ([rows, columns], [row, column]) = (self.warp(), place);
        let w = w.rows(column, columns);
        (0..DEPTH).step_by(INNER).fold(sums, |sums, depth| {
            let w = w.columns(depth, INNER as u32).load_bt();
            x.iter()
                .fold(sums, |sums, x| x.rows(row, rows).columns(depth, INNER as u32).load_a().mma(w, sums))
        })
    }
}

/// What becomes of the sums: `y = scale · sums + bias + residual`, rounded; what `f16` cannot hold becomes ±65504.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epilogue {
    pub(crate) n: u32,
    pub(crate) scaled: bool,
    pub(crate) bias: bool,
    pub(crate) residual: bool,
    pub(crate) out: Dtype,
}

/// The buffers of an [`Epilogue`].
#[derive(Clone, Copy)]
pub(crate) struct Outputs<'k> {
    scales: Option<Ptr<'k, Global, f32>>,
    bias: Option<Ptr<'k, Global, f32>>,
    residual: Option<Floats<'k>>,
    y: Floats<'k>,
    tokens: Reg<'k, u32>,
}

impl Epilogue {
    /// The arguments from `scales` on.
    pub(crate) fn args(self) -> Vec<ArgDesc> {
        let all = Extent::dim("tokens").times(self.n.into());
        let mut args = Vec::new();
        if self.scaled {
            args.push(ArgDesc::input::<f32>("scales", Extent::dim("tokens")));
        }
        if self.bias {
            args.push(ArgDesc::input::<f32>("bias", self.n).constant());
        }
        if self.residual {
            args.push(ArgDesc::buffer("residual", self.out.ty(), Role::In, all));
        }
        let y = ArgDesc::buffer("y", self.out.ty(), Role::Out, all);
        args.push(if self.residual { y.may_share(&["residual"]) } else { y });
        args.push(ArgDesc::scalar::<u32>("tokens"));
        args
    }

    /// The same as parameters.
    pub(crate) fn declare<'k>(self, k: K<'k>) -> Outputs<'k> {
        Outputs {
            scales: self.scaled.then(|| k.ptr("scales")),
            bias: self.bias.then(|| k.ptr("bias")),
            residual: self.residual.then(|| k.floats("residual", self.out)),
            y: k.floats_mut("y", self.out),
            tokens: k.scalar("tokens"),
        }
    }

    /// A part of the entry's name.
    pub(crate) fn name(self) -> String {
        let part = |there: bool, name: &'static str| if there { name } else { "" };
        format!("{}{}{}", self.out, part(self.bias, "_bias"), part(self.residual, "_residual"))
    }
}

impl<'k> Outputs<'k> {
    /// Number of tokens.
    pub(crate) fn tokens(&self) -> Reg<'k, u32> {
        self.tokens
    }

    /// Finishes a warp's sums, which begin at a row and a column of `y`: 16 rows at a time, so that few numbers
    /// of the residual are held.
    pub(crate) fn store(&self, n: u32, sums: Tile<'k, Acc, f32>, [row, column]: [Reg<'k, u32>; 2]) {
        let (k, columns) = (row.kernel(), sums.columns());
        let bias =
            self.bias.map(|bias| k.columns_at(columns, |j| bias.ld_if((column + j).lt(n), column + j, 0.0)));
        for (first, part) in (0..).step_by(16).zip(sums.to_vec().chunks_exact(columns as usize / 2)) {
            self.store_16(n, k.accumulators_of(16, columns, part), bias, [row + first, column]);
        }
    }

    fn store_16(
        &self,
        n: u32,
        mut sums: Tile<'k, Acc, f32>,
        bias: Option<Columns<'k>>,
        [row, column]: [Reg<'k, u32>; 2],
    ) {
        let (k, tokens) = (row.kernel(), self.tokens);
        if let Some(scales) = self.scales {
            sums = sums * k.rows_at(16, |i| scales.ld_if((row + i).lt(tokens), row + i, 0.0));
        }
        if let Some(bias) = bias {
            sums = sums + bias;
        }
        if let Some(residual) = self.residual {
            sums = sums.map_at(|i, j, sum| {
                let (i, j) = (row + i, column + j);
                sum + residual.ld_if(i.lt(tokens) & j.lt(n), i * n + j)
            });
        }
        match self.y {
            Floats::F32(y) => sums.store(y.matrix(tokens, n), row, column),
            Floats::F16(y) => sums.store_finite(y.matrix(tokens, n), row, column),
            Floats::Bf16(y) => sums.store(y.matrix(tokens, n), row, column),
        }
    }
}

/// The field for the tokens of a block's tile.
pub(crate) const ROWS: Field = Field {
    name: "rows",
    domain: Domain::Int { from: 16, to: 128, multiple_of: 16 },
    default: Some("128"),
    doc: "tokens of a block's tile: 16, 32, 64 or 128",
};
/// The field for the columns of a block's tile.
pub(crate) const COLUMNS: Field = Field {
    name: "columns",
    domain: Domain::Int { from: 64, to: 128, multiple_of: 64 },
    default: Some("128"),
    doc: "columns of a block's tile: 64 for more blocks of a small product",
};
/// The fields of the epilogue.
pub(crate) const OUT: Field =
    Field { name: "out", domain: DTYPES, default: Some("f32"), doc: "element type of y and the residual" };
pub(crate) const BIAS: Field =
    Field { name: "bias", domain: Domain::FLAG, default: Some("false"), doc: "adds an f32 for each column" };
pub(crate) const RESIDUAL: Field = Field {
    name: "residual",
    domain: Domain::FLAG,
    default: Some("false"),
    doc: "adds a matrix like y, which may be y",
};
/// The fields of the matrix.
pub(crate) const N: Field =
    Field { name: "n", domain: Domain::int(1, 1 << 20), default: Some("4096"), doc: "rows of the matrix" };
pub(crate) const WEIGHTS: Field =
    Field { name: "k", domain: Domain::int(1, 1 << 20), default: Some("4096"), doc: "weights of a row" };
