//! Layers of models: how many steps a dispatcher that does everything makes of them.

use super::model::{Call, MODELS, Model, graph};
use super::terms::Terms;
use warpwright_graph::{Fusion, Fusions, Program, StepOp, fuse};
use warpwright_kernels::Activation;

fn model(name: &str) -> &'static Model {
    static ALL: [Model; 5] = MODELS;
    ALL.iter().find(|model| model.name == name).expect("a model")
}

fn names(program: &Program) -> Vec<&'static str> {
    program.steps().iter().map(|step| step.op.name()).collect()
}

/// At most so many matrices, as the kernels of the library have them.
fn up_to_four(_: Fusion, op: &StepOp, _: &Program) -> bool {
    !matches!(op, StepOp::Products(products) if products.matrices.len() > 4)
}

/// A step of decoding takes six steps for a layer, in every model: norm with q, k and v; rotation and the way into
/// the cache; attention; o with its residual; norm with gate and up; down with its residual.
#[test]
fn a_layer_is_six_steps() {
    for model in &MODELS {
        let graph = graph(model, &Call::decode(1)).unwrap();
        let before = Program::new(&graph).unwrap();
        let mut program = before.clone();
        fuse(&mut program, Fusions::all(), &up_to_four);
        program.check().unwrap();
        let layer = ["products", "rope", "attention", "products", "products", "products"];
        assert_eq!(names(&program), layer, "{}", model.name);
        let mut terms = Terms::default();
        assert_eq!(terms.of_graph(&graph), terms.of_program(&program));

        let products: Vec<_> = (program.steps().iter())
            .filter_map(|step| match &step.op {
                StepOp::Products(products) => Some(products),
                _ => None,
            })
            .collect();
        let shape = |i: usize| {
            let residuals = products[i].matrices.iter().filter(|matrix| matrix.residual.is_some()).count();
            (products[i].norm.is_some(), products[i].matrices.len(), products[i].gate, residuals)
        };
        assert_eq!(
            [0, 1, 2, 3].map(shape),
            [
                (true, 3, None, 0),
                (false, 1, None, 1),
                (true, 2, Some(Activation::Silu), 0),
                (false, 1, None, 1)
            ]
        );
        assert_eq!(products[0].matrices.iter().filter(|m| m.bias.is_some()).count() == 3, model.biases);
        let StepOp::Rope(rope) = &program.steps()[1].op else { panic!("no rotation") };
        let (rotate, append) = (rope.rotate.unwrap(), rope.append.unwrap());
        assert_eq!((rotate.norm.is_some(), append.k_norm.is_some()), (model.head_norms, model.head_norms));
        assert_eq!(rope.factors.is_some(), model.rope_factors);
    }
}

/// The whole step: six for each layer, and the embedding, the norm with the logits, the token, counting up.
#[test]
fn a_whole_step_is_six_a_layer_and_four() {
    let model = model("qwen3-0.6b");
    let call = Call { layers: model.layers, whole: true, ..Call::decode(1) };
    let graph = graph(model, &call).unwrap();
    let mut program = Program::new(&graph).unwrap();
    fuse(&mut program, Fusions::all(), &up_to_four);
    program.check().unwrap();
    assert_eq!(program.steps().len() as u32, 6 * model.layers + 4);
}

/// Prompts of many tokens, where products take a residual and nothing else.
#[test]
fn with_residuals_only() {
    let model = model("llama-3.2-1b");
    let graph = graph(model, &Call { tokens: 64, ..Call::decode(2) }).unwrap();
    let mut program = Program::new(&graph).unwrap();
    let fusions = Fusions::none().with(Fusion::Residual).with(Fusion::RopeAppend);
    fuse(&mut program, Fusions::all(), &|fusion, _, _| fusions.contains(fusion));
    program.check().unwrap();
    let expected = [
        "norm",
        "products",
        "products",
        "products",
        "rope",
        "prefill_attention",
        "products",
        "norm",
        "products",
        "products",
        "glu",
        "products",
    ];
    assert_eq!(names(&program), expected);
}

/// Heads are normed by themselves where the rotation cannot do it.
#[test]
fn without_norms_of_heads() {
    let graph = graph(model("qwen3-8b"), &Call::decode(3)).unwrap();
    let mut program = Program::new(&graph).unwrap();
    fuse(&mut program, Fusions::all().without(Fusion::HeadNormRope), &up_to_four);
    assert_eq!(names(&program)[..4], ["products", "norm", "norm", "rope"]);
}
