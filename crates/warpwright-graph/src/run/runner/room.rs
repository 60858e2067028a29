XX/// The type of a state that has room for what there is and for what a plan takes it for. What cannot be both is left
/// as the plan has it, and is the store's to refuse.
fn room(there: TensorType, needed: TensorType) -> TensorType {
    let (have, want) = (there.shape.dims(), needed.shape.dims());
    if have.len() != want.len() {
        return needed;
    }
    let mut dims = want.to_vec();
    if let (Some(dim), Some(&have)) = (dims.first_mut(), have.first()) {
        *dim = have.max(*dim);
    }
    if let (Element::Cache(_), Some(dim), Some(&have)) = (needed.element, dims.get_mut(2), have.get(2)) {
        *dim = have.max(*dim);
    }
    Shape::new(&dims).map_or(needed, |shape| TensorType { shape, ..needed })
}

