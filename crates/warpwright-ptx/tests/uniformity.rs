//! How alike the results of instructions are in different threads: every form of every instruction, from the
//! files of `tests/filetests`, by a table; and small kernels, for rules that look at one operand.
//!
//! The table is the meaning of the ISA's text, written anew: a row names what determines the result.

mod common;

use common::{ptx_files, read, report, test_data};
use std::collections::BTreeSet;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::{Access, Level, Operands, Visitor};
use warpwright_ptx::verify::{Cfg, Uniformity};
use warpwright_ptx::{parse, verify};

/// What determines a result.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// The operands, and nothing else.
    Operands,
    /// The operands, and what is no better than of that level.
    With(Level),
    /// What is found by the operands: where they differ, it may be the same all the same.
    Found,
    /// The same in memory that every block has for itself.
    FoundInBlock,
    /// The values of all lanes that the mask names, in the same way for each of them.
    Lanes,
    /// The same, and how many there are: the last warp of a block may have fewer.
    LanesAndCount,
    /// The predicates of all threads of the block.
    Threads,
    /// This, whatever the operands are.
    Fixed(Level),
}

impl Rule {
    /// The level of the result, where the operands are of level `input`, the mask among them if it is a register.
    fn result(self, input: Level, constant_mask: bool) -> Level {
        let together = match input {
            input if input <= Level::WarpData => input,
            _ if constant_mask => Level::WarpData,
            _ => Level::Unknown,
        };
        let found = if input <= Level::WarpData { input } else { Level::Unknown };
        match self {
            Rule::Operands => input,
            Rule::With(level) => input.max(level),
            Rule::Found => found,
            Rule::FoundInBlock => found.max(Level::BlockData),
            Rule::Lanes => together,
            Rule::LanesAndCount => together.max(Level::WarpData),
            Rule::Threads => input.min(Level::BlockData),
            Rule::Fixed(level) => level,
        }
    }

    /// Why the result may be more alike than the operands are.
    fn gathers(self) -> Option<&'static str> {
        match self {
            Rule::Operands | Rule::With(_) | Rule::Found | Rule::FoundInBlock => None,
            Rule::Fixed(Level::Unknown) => None,
            Rule::Lanes | Rule::LanesAndCount => Some("the lanes make one value together"),
            Rule::Threads => Some("the threads of the block make one value together"),
            Rule::Fixed(_) => Some("threads that wait together make one value, whatever each of them brings"),
        }
    }
}

/// The instructions that write registers, by the beginning of their text up to a dot; the longest counts.
const FORMS: &[(Rule, &str)] = &[
    // Arithmetic on values.
    (
        Rule::Operands,
        "abs add addc and bfe bfi bfind bmsk brev clmad clz cnot copysign cos cvt div dp2a dp4a ex2 fma fns lg2
         lop3 mad mad24 madc max min mul mul24 neg not or popc prmt rcp rem rsqrt sad selp set setp shf shl shr sin
         slct sqrt sub subc szext tanh testp xor vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad
         vmax vmax2 vmax4 vmin vmin2 vmin4 vset vset2 vset4 vshl vshr vsub vsub2 vsub4",
    ),
    // Copies, addresses, opaque words, and what is asked of handles.
    (Rule::Operands, "mov cvta createpolicy isspacep istypep suq txq mbarrier.pending_count"),
    (Rule::Operands, "clusterlaunchcontrol.query_cancel"),
    // A thread's own memory behind an address; memory of one block behind an address of the cluster.
    (Rule::Fixed(Level::Unknown), "cvta.local alloca stacksave"),
    (Rule::With(Level::BlockData), "isspacep.shared isspacep.shared::cta getctarank"),
    (Rule::With(Level::Cluster), "mapa"),
    // Loads of what nobody writes meanwhile.
    (Rule::Found, "ld.global ld.weak.global ld.const ld.param ld.param::entry ldu tex tld4 suld"),
    (Rule::FoundInBlock, "ld ld.shared ld.shared::cta ld.shared::cluster"),
    (Rule::FoundInBlock, "ld.weak ld.weak.shared ld.weak.shared::cta ld.weak.shared::cluster"),
    // Loads of what others write meanwhile, and of what each thread has for itself.
    (Rule::Fixed(Level::Unknown), "ld.relaxed ld.acquire ld.volatile ld.mmio ld.local ld.weak.local"),
    (Rule::Fixed(Level::Unknown), "multimem.ld_reduce atom call"),
    (Rule::Fixed(Level::Unknown), "mbarrier.arrive mbarrier.arrive_drop mbarrier.test_wait mbarrier.try_wait mbarrier.check_layout"),
    // Every lane has other elements of a matrix.
    (Rule::Fixed(Level::Unknown), "mma ldmatrix movmatrix wmma wgmma tcgen05"),
    // Who is there just now.
    (Rule::Fixed(Level::Unknown), "activemask"),
    // Exchanges in a warp.
    (Rule::Found, "shfl"),
    (Rule::Lanes, "shfl.sync.idx vote.sync.all vote.sync.any vote.sync.uni"),
    (Rule::Lanes, "redux.sync.min redux.sync.max redux.sync.and redux.sync.or"),
    (Rule::LanesAndCount, "vote.sync.ballot redux.sync.add redux.sync.xor match.all match.sync.all elect"),
    (Rule::Lanes, "vote.all vote.any vote.uni"),
    (Rule::LanesAndCount, "vote.ballot"),
    // Barriers that compute something.
    (Rule::Threads, "bar.red bar.cta.red barrier.red barrier.cta.red"),
    (Rule::Fixed(Level::BlockData), "bar.red.popc barrier.red.popc"),
];

/// A lane's value in the mask of those that have it is found, and tells how many lanes there are.
const MATCH_ANY: [&str; 2] = ["match.any.sync", "match.sync.any"];

/// Barriers with a number of threads: by whole warps where they are aligned.
fn counted_barrier(text: &str) -> Option<Rule> {
    let barrier = text.starts_with("bar.") || text.starts_with("barrier.");
    let aligned = text.starts_with("bar.") || text.contains(".aligned");
    let level = if aligned { Level::WarpData } else { Level::Unknown };
    (barrier && text.matches(',').count() == 3).then_some(Rule::Fixed(level))
}

/// A shuffle by index that does not name one lane for all: the lane is in a register, or clamped away.
fn clamped_shuffle(text: &str) -> Option<Rule> {
    let [lane, clamp] = [2, 3].map(|at| operand(text, at));
    (text.starts_with("shfl.sync.idx") && !(is_number(lane) && clamp == "31")).then_some(Rule::Found)
}

/// What a load names in its address: `[name+offset]` or `name[subscript]`.
fn accessed(text: &str) -> Option<&str> {
    let (before, inside) = text.split_once('[')?;
    let array = before.rsplit([' ', ',']).next()?;
    if array.is_empty() { inside.split([']', '+']).next() } else { Some(array) }
}

/// A parameter that is none of a kernel's.
fn parameter(function: &Function, text: &str) -> Option<Rule> {
    let name = accessed(text)?;
    let mut own = function.params.iter().filter_map(|param| match param {
        Param::Variable(id) => Some(&*function.variable(*id).name),
        Param::Register(_) => None,
    });
    // An address in a register is of the function's own.
    let of_kernel =
        function.kind == FunctionKind::Entry && (name.starts_with('%') || own.any(|own| own == name));
    (text.starts_with("ld.param") && !of_kernel).then_some(Rule::Fixed(Level::Unknown))
}

/// A load without a state space of a variable that every thread has for itself.
fn own_variable(function: &Function, text: &str) -> Option<Rule> {
    let name = accessed(text)?;
    let own =
        function.variables.iter().any(|variable| variable.space == Space::Local && *variable.name == *name);
    (text.starts_with("ld.") && own).then_some(Rule::Fixed(Level::Unknown))
}

/// An operand, counted from 0, of an instruction without vectors.
fn operand(text: &str, at: usize) -> &str {
    let operands = text.split_once(char::is_whitespace).map_or("", |(_, operands)| operands);
    operands.trim_end_matches(';').split(',').nth(at).unwrap_or("").trim()
}

fn is_number(operand: &str) -> bool {
    operand.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// The row of an instruction, with what it is called there.
fn row(text: &str) -> Option<(Rule, &'static str)> {
    let opcode = text.split_whitespace().next()?;
    let begins =
        |name: &str| opcode.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let rows = FORMS.iter().flat_map(|(rule, names)| names.split_whitespace().map(move |name| (*rule, name)));
    rows.filter(|(_, name)| begins(name)).max_by_key(|(_, name)| name.len())
}

/// What an instruction reads and writes.
struct Used<'a> {
    function: &'a Function,
    registers: &'a [Level],
    input: Level,
    writes: bool,
}

impl Visitor for Used<'_> {
    fn reg(&mut self, access: Access, reg: Reg) {
        if access != Access::Write {
            self.input = self.input.max(self.registers[reg.0 as usize]);
        }
        self.writes |= access != Access::Read;
    }

    fn special(&mut self, special: Special) {
        self.input = self.input.max(Level::of_special(special, self.function));
    }
}

/// Holds one instruction to its row, for operands of every level.
fn check(
    function: &Function,
    instruction: &Instruction,
    text: &str,
    seen: &mut BTreeSet<&'static str>,
) -> Result<(), String> {
    for level in Level::ALL {
        let registers = vec![level; function.register_count() as usize];
        let mut used = Used { function, registers: &registers, input: Level::Grid, writes: false };
        instruction.op.visit(&mut used);
        if !used.writes {
            return Ok(());
        }
        if instruction.op.carry().reads {
            used.input = used.input.max(level);
        }
        let input = used.input;
        let operands = Operands { function, registers: &registers, all: input, thread_indices: &[] };
        let found = instruction.op.uniformity(&operands);
        let expected = if MATCH_ANY.iter().any(|name| text.starts_with(name)) {
            Rule::Found.result(input, false).max(Level::WarpData)
        } else {
            let (rule, name) = row(text).ok_or("it has no row")?;
            seen.insert(name);
            let mask = text.trim_end_matches(';').rsplit(',').next().unwrap_or("").trim();
            let without_mask = text.starts_with("vote.") && !text.contains(".sync");
            let variable = parameter(function, text).or_else(|| own_variable(function, text));
            let special = counted_barrier(text).or(clamped_shuffle(text)).or(variable);
            let rule = special.unwrap_or(rule);
            let expected = rule.result(input, without_mask || is_number(mask));
            if expected < input && rule.gathers().is_none() {
                return Err(format!("{rule:?} makes more alike what it gets ({input:?})"));
            }
            expected
        };
        if found != expected {
            return Err(format!(
                "of operands that are {level:?} it is {found:?}, and should be {expected:?}"
            ));
        }
    }
    Ok(())
}

#[test]
fn every_form_has_its_level() {
    let files = ptx_files(&test_data().join("filetests"));
    let mut failures = Vec::new();
    let mut seen = BTreeSet::new();
    let mut forms = 0;
    for path in &files {
        let text = read(path);
        let Ok(module) = parse(&text) else { continue };
        if verify(&module).is_err() {
            continue;
        }
        for function in module.functions() {
            for statement in function.statements() {
                let StatementKind::Instruction(instruction) = &statement.kind else { continue };
                let Origin::Text(span) = statement.origin else { continue };
                let text = &text[span.start as usize..span.end as usize];
                let text = text.strip_prefix('@').map_or(text, |rest| rest.split_once(' ').unwrap().1);
                forms += 1;
                if let Err(problem) = check(function, instruction, text, &mut seen) {
                    failures.push(format!("`{text}`: {problem}"));
                }
            }
        }
    }
    let rows = FORMS.iter().flat_map(|(_, names)| names.split_whitespace());
    failures
        .extend(rows.filter(|name| !seen.contains(name)).map(|name| format!("`{name}` is never written")));
    report("forms", forms, &failures);
}

/// A kernel of a body, with the registers `%p0`…, `%h0`…, `%r0`… and `%d0`….
fn kernel(body: &str) -> Module {
    let text = format!(
        ".version 8.6 .target sm_90a .address_size 64
         .global .align 8 .b8 mem[256]; .shared .align 8 .b8 sm[256];
         .visible .entry k(.param .u32 n) {{ .local .align 8 .b8 lm[64];
         .reg .pred %p<4>; .reg .b16 %h<2>; .reg .b32 %r<8>; .reg .b64 %d<4>; {body} ret; }}"
    );
    parse(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// Holds registers of kernels to their levels.
#[track_caller]
fn expect(table: &[(&str, &str, Level)]) {
    for (body, register, expected) in table {
        let module = kernel(body);
        let function = module.entries().next().expect("a kernel");
        let cfg = Cfg::new(&ModuleIndex::new(&module), function);
        let reg =
            (0..function.register_count()).map(Reg).find(|&reg| function.register_name(reg) == *register);
        let found = Uniformity::new(function, &cfg).register(reg.expect("the register"));
        assert_eq!(found, *expected, "{register} in {body}");
    }
}

#[test]
fn votes_are_of_the_lanes_that_one_mask_names() {
    let lanes = "mov.u32 %r0, %laneid; setp.lt.u32 %p0, %r0, 7;";
    let table = [
        ("vote.sync.any.pred %p1, %p0, -1;", "%p1", Level::WarpData),
        // In a register that is the same for the warp.
        ("mov.u32 %r1, 0xff; vote.sync.any.pred %p1, %p0, %r1;", "%p1", Level::WarpData),
        ("mov.u32 %r1, %warpid; vote.sync.any.pred %p1, %p0, %r1;", "%p1", Level::WarpData),
        // Groups of lanes, each with its mask, come to different votes.
        ("match.any.sync.b32 %r1, %r0, -1; vote.sync.any.pred %p1, %p0, %r1;", "%p1", Level::Unknown),
        // Equal votes: alike for all, but for their number.
        ("setp.eq.u32 %p2, 0, 0; vote.sync.all.pred %p1, %p2, -1;", "%p1", Level::Grid),
        ("setp.eq.u32 %p2, 0, 0; vote.sync.ballot.b32 %r2, %p2, -1;", "%r2", Level::WarpData),
        // Whoever is there just now.
        ("activemask.b32 %r1;", "%r1", Level::Unknown),
        ("elect.sync %r1|%p1, -1;", "%r1", Level::WarpData),
        ("elect.sync %r1|%p1, -1;", "%p1", Level::Lane),
    ];
    let bodies: Vec<_> = table.iter().map(|(body, ..)| format!("{lanes} {body}")).collect();
    let table: Vec<_> = table.iter().zip(&bodies).map(|(row, body)| (body.as_str(), row.1, row.2)).collect();
    expect(&table);
}

#[test]
fn shuffles_read_one_lane_or_several() {
    let lane = "mov.u32 %r0, %laneid;";
    let table = [
        ("shfl.sync.idx.b32 %r1|%p1, %r0, 3, 31, -1;", "%r1", Level::WarpData),
        ("shfl.sync.idx.b32 %r1|%p1, %r0, 3, 31, -1;", "%p1", Level::Grid),
        // The lane is in a register that is the same for the warp, and in one that is not.
        ("mov.u32 %r2, %warpid; shfl.sync.idx.b32 %r1, %r0, %r2, 31, -1;", "%r1", Level::WarpData),
        ("xor.b32 %r2, %r0, 1; shfl.sync.idx.b32 %r1, %r0, %r2, 31, -1;", "%r1", Level::Unknown),
        // Groups of lanes, each with its mask.
        ("match.any.sync.b32 %r2, %r0, -1; shfl.sync.idx.b32 %r1, %r0, 3, 31, %r2;", "%r1", Level::Unknown),
        // In segments of eight lanes, each reads its own fourth.
        ("shfl.sync.idx.b32 %r1, %r0, 3, 0x181f, -1;", "%r1", Level::Unknown),
        // Lanes beyond the clamp keep their own value.
        ("shfl.sync.idx.b32 %r1, %r0, 3, 1, -1;", "%r1", Level::Unknown),
        ("shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;", "%r1", Level::Unknown),
        // The same value everywhere; whether a lane was found is another matter.
        ("mov.u32 %r2, %warpid; shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1;", "%r1", Level::Warp),
        ("mov.u32 %r2, %warpid; shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1;", "%p1", Level::Lane),
    ];
    let bodies: Vec<_> = table.iter().map(|(body, ..)| format!("{lane} {body}")).collect();
    let table: Vec<_> = table.iter().zip(&bodies).map(|(row, body)| (body.as_str(), row.1, row.2)).collect();
    expect(&table);
}

#[test]
fn the_carry_flag_is_an_operand() {
    expect(&[
        ("mov.u32 %r0, %laneid; add.cc.u32 %r1, %r0, 1; addc.u32 %r2, 0, 0;", "%r2", Level::Lane),
        ("mov.u32 %r0, %laneid; sub.cc.u32 %r1, %r0, 1; subc.u32 %r2, 0, 0;", "%r2", Level::Lane),
        ("mov.u32 %r0, %laneid; mad.lo.cc.u32 %r1, %r0, 3, 1; madc.hi.u32 %r2, 0, 0, 0;", "%r2", Level::Lane),
        // Through an instruction that adds it and sets it.
        (
            "mov.u32 %r0, %laneid; add.cc.u32 %r1, %r0, 1; addc.cc.u32 %r2, 0, 0; addc.u32 %r3, 0, 0;",
            "%r3",
            Level::Lane,
        ),
        // Each sum reads what its own chain has set.
        (
            "mov.u32 %r0, %laneid; add.cc.u32 %r1, %r0, 1; addc.u32 %r2, 0, 0;
             add.cc.u32 %r3, 1, 1; addc.u32 %r4, 0, 0;",
            "%r4",
            Level::Grid,
        ),
        // Not where some threads keep what was set before,
        (
            "mov.u32 %r0, %laneid; add.cc.u32 %r1, %r0, 1; ld.param.u32 %r5, [n]; setp.eq.u32 %p0, %r5, 0;
             @%p0 add.cc.u32 %r3, 1, 1; addc.u32 %r4, 0, 0;",
            "%r4",
            Level::Lane,
        ),
        // nor behind a label, where it comes from elsewhere.
        (
            "mov.u32 %r0, %laneid; add.cc.u32 %r3, 1, 1; bra L; L: addc.u32 %r4, 0, 0;
             add.cc.u32 %r1, %r0, 1;",
            "%r4",
            Level::Lane,
        ),
    ]);
}

#[test]
fn the_index_of_a_thread_is_known() {
    expect(&[
        ("mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5;", "%r1", Level::Warp),
        ("mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 4;", "%r1", Level::Lane),
        ("mov.u32 %r0, %tid.x; div.u32 %r1, %r0, 96;", "%r1", Level::Warp),
        ("mov.u32 %r0, %tid.x; and.b32 %r1, %r0, -32;", "%r1", Level::Warp),
        ("mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 127; shr.u32 %r2, %r1, 5;", "%r2", Level::Warp),
        ("mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 15; shr.u32 %r2, %r1, 5;", "%r2", Level::Lane),
        ("mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 64;", "%p0", Level::Warp),
        ("mov.u32 %r0, %tid.x; setp.le.u32 %p0, %r0, 64;", "%p0", Level::Lane),
        ("mov.u32 %r0, %tid.y; shr.u32 %r1, %r0, 5;", "%r1", Level::Lane),
        ("mov.u32 %r0, %tid.x; mov.u32 %r1, %r0; shr.u32 %r2, %r1, 5;", "%r2", Level::Warp),
        // Another value in the same register.
        ("mov.u32 %r0, %tid.x; add.u32 %r0, %r0, 3; shr.u32 %r1, %r0, 5;", "%r1", Level::Lane),
        (
            "mov.u32 %r0, %tid.x; L: and.b32 %r1, %r0, 127; add.u32 %r0, %r0, 3; shr.u32 %r2, %r1, 5;
             setp.lt.u32 %p0, %r2, 9; @%p0 bra L;",
            "%r2",
            Level::Lane,
        ),
    ]);
}

#[test]
fn memory_is_of_someone() {
    expect(&[
        ("ld.global.u32 %r0, [mem];", "%r0", Level::Grid),
        ("ld.shared.u32 %r0, [sm];", "%r0", Level::BlockData),
        ("ld.volatile.global.u32 %r0, [mem];", "%r0", Level::Unknown),
        ("ld.relaxed.gpu.global.u32 %r0, [mem];", "%r0", Level::Unknown),
        ("cvta.global.u64 %d0, mem; ld.u32 %r0, [%d0];", "%r0", Level::BlockData),
        ("mapa.shared::cluster.u32 %r1, sm, 0;", "%r1", Level::Cluster),
        ("getctarank.shared::cluster.u32 %r1, sm;", "%r1", Level::BlockData),
    ]);
}

#[test]
fn what_a_thread_keeps_is_what_it_stored() {
    const LANE: &str = "mov.u32 %r0, %laneid;";
    let table = [
        ("st.local.u32 [lm], 7; ld.local.u32 %r1, [lm];", "%r1", Level::Grid),
        ("st.local.u32 [lm], %r0; ld.local.u32 %r1, [lm];", "%r1", Level::Lane),
        // Other bytes, and some of the same.
        ("st.local.u32 [lm], %r0; st.local.u32 [lm+4], 7; ld.local.u32 %r1, [lm+4];", "%r1", Level::Grid),
        ("st.local.u32 [lm], %r0; ld.local.u64 %d0, [lm];", "%d0", Level::Lane),
        ("st.local.u32 [lm], %r0; ld.local.v2.u16 {%h0, %h1}, [lm+2];", "%h1", Level::Lane),
        ("st.local.v2.u32 [lm], {1, %r0}; ld.local.u32 %r1, [lm+4];", "%r1", Level::Lane),
        // By other names: the address in a register, and the generic one.
        (
            "mov.u64 %d0, lm; cvta.local.u64 %d1, %d0; st.u32 [%d1+8], 7; ld.local.u32 %r1, [%d0+8];",
            "%r1",
            Level::Grid,
        ),
        (
            "mov.u64 %d0, lm; cvta.local.u64 %d1, %d0; st.u32 [%d1+8], %r0; ld.local.u32 %r1, [lm+8];",
            "%r1",
            Level::Lane,
        ),
        // Stored by some threads, or where they part.
        ("setp.lt.u32 %p0, %r0, 7; @%p0 st.local.u32 [lm], 7; ld.local.u32 %r1, [lm];", "%r1", Level::Lane),
        (
            "setp.lt.u32 %p0, %r0, 7; @%p0 bra L; st.local.u32 [lm], 7; L: ld.local.u32 %r1, [lm];",
            "%r1",
            Level::Lane,
        ),
        // In a loop, behind the load.
        (
            "L: ld.local.u32 %r1, [lm]; setp.lt.u32 %p0, %r1, 7; st.local.u32 [lm], %r0; @%p0 bra L;",
            "%r1",
            Level::Lane,
        ),
        // Where the address goes elsewhere, or has more than one value, nothing is known.
        (
            "mov.u64 %d0, lm; add.u64 %d1, %d0, 4; st.local.u32 [lm], 7; ld.local.u32 %r1, [lm];",
            "%r1",
            Level::Unknown,
        ),
        (
            "mov.u64 %d0, lm; st.global.u64 [mem], %d0; st.local.u32 [lm], 7; ld.local.u32 %r1, [lm];",
            "%r1",
            Level::Unknown,
        ),
        (
            "mov.u64 %d0, lm; st.local.u32 [%d0], 7; mov.u64 %d0, 0; st.local.u32 [%d0], %r0; ld.local.u32 %r1, [lm];",
            "%r1",
            Level::Unknown,
        ),
        ("cvta.local.u64 %d0, lm; ld.u32 %r1, [%d0]; st.u32 [%d0+4096], 7;", "%r1", Level::Grid),
        ("st.local.u32 [lm], 7; ld.local.u32 %r1, [lm+62];", "%r1", Level::Unknown),
        ("st.u32 [lm], 7; ld.u32 %r1, [lm];", "%r1", Level::Grid),
        ("st.u32 [lm], 7; ld.u32 %r1, [lm+62];", "%r1", Level::Unknown),
        (
            "cvta.local.u64 %d0, lm; mov.u64 %d1, %d0; add.u64 %d1, %d1, 4; ld.u32 %r1, [%d1];",
            "%r1",
            Level::Unknown,
        ),
    ];
    let bodies: Vec<_> = table.iter().map(|(body, ..)| format!("{LANE} {body}")).collect();
    let table: Vec<_> = table.iter().zip(&bodies).map(|(row, body)| (body.as_str(), row.1, row.2)).collect();
    expect(&table);
}
