//! Libraries of code that the client loads by itself.

use super::forward;
use crate::abi::{Handle, In, Out};
use std::ffi::{c_char, c_uint};

forward! {
    cudaLibraryLoadData(
        library: Out<Handle>, code: Handle, options: Handle, values: Handle, count: c_uint, library_options: Handle,
        library_values: Handle, library_count: c_uint
    ) = cuLibraryLoadData(library, code, options, values, count, library_options, library_values, library_count);
    cudaLibraryLoadFromFile(
        library: Out<Handle>, file: In<c_char>, options: Handle, values: Handle, count: c_uint, library_options: Handle,
        library_values: Handle, library_count: c_uint
    ) = cuLibraryLoadFromFile(library, file, options, values, count, library_options, library_values, library_count);
    cudaLibraryUnload(library: Handle) = cuLibraryUnload(library);
    cudaLibraryGetKernel(kernel: Out<Handle>, library: Handle, name: In<c_char>) =
        cuLibraryGetKernel(kernel, library, name);
    cudaLibraryGetKernelCount(count: Out<c_uint>, library: Handle) = cuLibraryGetKernelCount(count, library);
    cudaLibraryEnumerateKernels(kernels: Out<Handle>, count: c_uint, library: Handle) =
        cuLibraryEnumerateKernels(kernels, count, library);
    cudaLibraryGetGlobal(address: Out<Handle>, bytes: Out<usize>, library: Handle, name: In<c_char>) =
        cuLibraryGetGlobal(address, bytes, library, name);
    cudaLibraryGetManaged(address: Out<Handle>, bytes: Out<usize>, library: Handle, name: In<c_char>) =
        cuLibraryGetManaged(address, bytes, library, name);
    cudaLibraryGetUnifiedFunction(function: Out<Handle>, library: Handle, name: In<c_char>) =
        cuLibraryGetUnifiedFunction(function, library, name);
}
