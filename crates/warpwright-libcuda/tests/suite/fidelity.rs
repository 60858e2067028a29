//! A client whose kernels execute what hardware may compute otherwise, and reach what is not executed. It looks at no error.

use super::{init, launch, synchronize};
use crate::common::{Findings, client, context, kernel, ok};

const PTX: &str = ".version 8.1
.target sm_90
.address_size 64
.visible .entry assumes()
{
    .reg .f64 %fd<3>;
    mov.f64 %fd1, 0d4008000000000000;
    rcp.approx.ftz.f64 %fd2, %fd1;
    rsqrt.approx.f64 %fd2, %fd1;
    ret;
}
.visible .entry reaches()
{
    .reg .b16 %h<5>;
    mov.b16 %h1, 0x3c00;
    fma.rn.oob.f16 %h2, %h1, %h1, %h1;
    ret;
}
";

/// The client.
pub(crate) fn play(also_refused: bool) {
    ok(init());
    context(0);
    for _ in 0..2 {
        launch(kernel(PTX, "assumes"), 32, None);
    }
    if also_refused {
        launch(kernel(PTX, "reaches"), 32, None);
        let _ = synchronize();
    }
}

/// What it is told, and how it ends.
pub(crate) fn test() {
    let assumed = "note: assumed: `rcp.approx.ftz.f64` and another form: the ISA states no bound of the error; see \
                   `warpwright fidelity`";
    let ended = client("assumes", &[("WARPWRIGHT_EXIT_STATUS", "9")]);
    assert_eq!((ended.status(), ended.errors()), (Some(0), vec![format!("warpwright: {assumed}")]));

    for policy in ["stop", "continue"] {
        let findings = Findings::new("fidelity");
        let variables = [
            ("WARPWRIGHT_EXIT_STATUS", "9"),
            ("WARPWRIGHT_FINDINGS", findings.path()),
            ("WARPWRIGHT_ON_ERROR", policy),
        ];
        assert_eq!(client("assumes and is refused", &variables).status(), Some(9), "{policy}: nobody looked");
        let lines = findings.read();
        let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
        assert_eq!(events, ["trap", "assumed", "refused", "end"]);
        assert_eq!(lines[1]["forms"], serde_json::json!(["rcp.approx.ftz.f64", "rsqrt.approx.f64"]));
        assert_eq!(lines[2]["message"], lines[0]["message"]);
        assert_eq!(lines[0]["kind"], "unsupported");
    }
}
