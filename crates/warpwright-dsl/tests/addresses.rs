//! Where addresses are computed.

use warpwright_dsl::*;
use warpwright_ptx::ir::StatementKind;
use warpwright_ptx::op::Access;

#[test]
fn addresses_of_stores_behind_a_loop_take_no_registers_in_it() {
    let built = build("late", &LaunchRule::new(128), Arch::sm(80), |k| {
        let (x, y, n) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"), k.scalar::<u32>("n"));
        let sum = k.fold(k.range(k.u32(0)..n), k.f32(0.0), |i, sum| sum + x.ld(i));
        for row in 0..4 {
            y.st((k.ctaid() * 8 + row) * n + k.ctaid_y() * 32 + k.tid(), sum);
        }
    });
    let built = built.expect("a correct kernel");
    let function = built.module.entries().next().expect("an entry");
    let statements = function.statements();
    let is_label = |statement: &_| matches!(statement, StatementKind::Label(_));
    let labels: Vec<usize> = (statements.iter().enumerate())
        .filter(|(_, statement)| is_label(&statement.kind))
        .map(|(at, _)| at)
        .collect();
    let (before, behind) = (&statements[..labels[0]], &statements[*labels.last().expect("a label")..]);
    let registers = |list: &[warpwright_ptx::ir::Statement], wanted: Access| {
        let mut found = std::collections::BTreeSet::new();
        for statement in list {
            if let StatementKind::Instruction(instruction) = &statement.kind {
                instruction.op.visit(&mut |access: Access, reg: warpwright_ptx::ir::Reg| {
                    if access == wanted && function.register_name(reg).to_string().starts_with("%rd") {
                        found.insert(reg);
                    }
                });
            }
        }
        found
    };
    let (written, read) = (registers(before, Access::Write), registers(behind, Access::Read));
    assert_eq!(written.intersection(&read).count(), 1, "where `y` begins");
}
