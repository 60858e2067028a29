//! What layers keep of a sequence.

use super::*;
use warpwright_graph::SequenceState;
use warpwright_kernels::CacheDtype;

fn states(mixer: Mixer, dtype: CacheDtype) -> Vec<SequenceState> {
    LayerSpec { mixer, ..layer(attention()) }.states(dtype, 64)
}

/// Each mixer has the state that it goes on from, and no more.
#[test]
fn every_mixer_has_its_state() {
    let recurrence = RecurrenceSpec { tokens: 4, inner: 64, state: 16, heads: 4, groups: 2 };
    let rotation = Rotary {
        params: RopeParams { rotary_dim: 8, ..params(RopePairs::Interleaved) },
        factors: Factors::None,
        sections: None,
    };
    let latent = LatentSpec {
        heads: 4,
        query_rank: None,
        kv_rank: 32,
        key_dim: 24,
        value_dim: 16,
        split: true,
        mask: attention().mask,
        scale: 1.0,
        rotary: rotation,
    };
    let (dtype, kv_heads, page) = (CacheDtype::F16, 2, None);
    // Heads of 16 elements lie in 32.
    let keys = |window| SequenceState::KeysValues { dtype, kv_heads, head_dim: 32, window, page };
    // The channels are what `ssm_conv1d` has rows for.
    let recurrent = vec![
        SequenceState::Convolution { channels: 128, tokens: 3 },
        SequenceState::Recurrence { heads: 4, rows: 16, columns: 16 },
    ];
    let cases = [
        (Mixer::Attention(attention()), vec![keys(None)]),
        (Mixer::Attention(windowed(512, attention())), vec![keys(Some(512))]),
        (Mixer::Attention(AttentionSpec { shares: Some(3), ..attention() }), vec![]),
        (Mixer::Latent(latent), vec![SequenceState::Latent { dtype, rank: 32, rotary_dim: 8 }]),
        (Mixer::Mamba2(recurrence), recurrent.clone()),
        (Mixer::DeltaNet(recurrence), recurrent),
        (Mixer::ShortConvolution { tokens: 3 }, vec![SequenceState::Convolution { channels: 64, tokens: 2 }]),
    ];
    for (mixer, expected) in cases {
        assert_eq!(states(mixer.clone(), dtype), expected, "{mixer:?}");
    }
}

/// A model's state is that of its layers, whether it runs or not.
#[test]
fn a_hybrid_grows_by_its_attention_alone() {
    let recurrence = RecurrenceSpec { tokens: 4, inner: 64, state: 16, heads: 4, groups: 2 };
    let mamba = LayerSpec { mixer: Mixer::Mamba2(recurrence), ..layer(attention()) };
    let model = Expected::new(vec![mamba.clone(), mamba, layer(attention())]).0;
    let bytes = |tokens| model.state_bytes(CacheDtype::F16, tokens);
    // Two tensors of two heads of 32 halves for each token; two layers with 128 · 3 inputs and 4 matrices of 16 · 16.
    assert_eq!(bytes(101) - bytes(100), 2 * 2 * 32 * 2);
    assert_eq!(bytes(100) - 100 * (bytes(101) - bytes(100)), 2 * (128 * 3 + 4 * 16 * 16) * 4);
}
