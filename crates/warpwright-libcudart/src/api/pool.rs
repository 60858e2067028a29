//! Pools of memory.

use super::forward;
use crate::abi::{Handle, Out};
use std::ffi::{c_int, c_uint};

forward! {
    cudaMemPoolCreate(pool: Out<Handle>, properties: Handle) = cuMemPoolCreate(pool, properties);
    cudaMemPoolDestroy(pool: Handle) = cuMemPoolDestroy(pool);
    cudaMemPoolTrimTo(pool: Handle, kept_bytes: usize) = cuMemPoolTrimTo(pool, kept_bytes);
    cudaMemPoolSetAttribute(pool: Handle, attribute: c_int, value: Handle) =
        cuMemPoolSetAttribute(pool, attribute, value);
    cudaMemPoolGetAttribute(pool: Handle, attribute: c_int, value: Handle) =
        cuMemPoolGetAttribute(pool, attribute, value);
    cudaMemPoolSetAccess(pool: Handle, accesses: Handle, count: usize) = cuMemPoolSetAccess(pool, accesses, count);
    cudaMemPoolGetAccess(flags: Out<c_int>, pool: Handle, location: Handle) =
        cuMemPoolGetAccess(flags, pool, location);
    cudaMemPoolExportToShareableHandle(handle: Handle, pool: Handle, kind: c_int, flags: c_uint) =
        cuMemPoolExportToShareableHandle(handle, pool, kind, u64::from(flags));
    cudaMemPoolImportFromShareableHandle(pool: Out<Handle>, handle: Handle, kind: c_int, flags: c_uint) =
        cuMemPoolImportFromShareableHandle(pool, handle, kind, u64::from(flags));
    cudaMemPoolExportPointer(exported: Handle, address: Handle) = cuMemPoolExportPointer(exported, address);
    cudaMemPoolImportPointer(address: Out<Handle>, pool: Handle, exported: Handle) =
        cuMemPoolImportPointer(address, pool, exported);
    cudaMemGetDefaultMemPool(pool: Out<Handle>, location: Handle, kind: c_int) =
        cuMemGetDefaultMemPool(pool, location, kind);
    cudaMemGetMemPool(pool: Out<Handle>, location: Handle, kind: c_int) = cuMemGetMemPool(pool, location, kind);
    cudaMemSetMemPool(location: Handle, kind: c_int, pool: Handle) = cuMemSetMemPool(location, kind, pool);
}
