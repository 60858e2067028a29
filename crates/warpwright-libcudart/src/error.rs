//! Errors of the runtime, and the last one of each thread.
//!
//! The numbers are the driver's results where both interfaces have one; the others are the runtime's alone, and have
//! their texts here.

use crate::driver::driver;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};

/// An error: `cudaError_t` other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(c_int);

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Success, as a `cudaError_t`.
pub(crate) const SUCCESS: c_int = 0;

impl Error {
    pub(crate) const INVALID_VALUE: Error = Error(1);
    pub(crate) const INVALID_CONFIGURATION: Error = Error(9);
    pub(crate) const INVALID_PITCH: Error = Error(12);
    pub(crate) const INVALID_SYMBOL: Error = Error(13);
    pub(crate) const INVALID_CHANNEL_DESCRIPTOR: Error = Error(20);
    pub(crate) const INVALID_MEMCPY_DIRECTION: Error = Error(21);
    pub(crate) const INSUFFICIENT_DRIVER: Error = Error(35);
    pub(crate) const CALL_REQUIRES_NEWER_DRIVER: Error = Error(36);
    pub(crate) const MISSING_CONFIGURATION: Error = Error(52);
    pub(crate) const INVALID_DEVICE_FUNCTION: Error = Error(98);
    pub(crate) const NO_DEVICE: Error = Error(100);
    pub(crate) const INVALID_DEVICE: Error = Error(101);
    pub(crate) const NOT_FOUND: Error = Error(500);
    pub(crate) const NOT_SUPPORTED: Error = Error(801);
    pub(crate) const UNKNOWN: Error = Error(999);

    /// The result of a call of the driver.
    pub(crate) fn check(code: c_int) -> Result<()> {
        if code == SUCCESS { Ok(()) } else { Err(Error(code)) }
    }

    /// Its number.
    pub(crate) fn code(self) -> c_int {
        self.0
    }
}

thread_local! {
    static LAST: Cell<c_int> = const { Cell::new(SUCCESS) };
}

/// Notes the error of a call for `cudaGetLastError`; returns its number.
pub(crate) fn noted(result: Result<()>) -> c_int {
    let code = result.err().map_or(SUCCESS, Error::code);
    if code != SUCCESS {
        LAST.set(code);
    }
    code
}

/// The last error of the thread.
pub(crate) fn last() -> c_int {
    LAST.get()
}

/// The last error of the thread, which is forgotten.
pub(crate) fn take_last() -> c_int {
    LAST.replace(SUCCESS)
}

/// The name of an error in C.
pub(crate) fn name(code: c_int) -> &'static CStr {
    row(code).map_or(c"unrecognized error code", |(name, _)| name)
}

/// What an error means: the runtime's text, or the driver's.
pub(crate) fn description(code: c_int) -> *const c_char {
    let text = match row(code) {
        None => c"unrecognized error code",
        Some((_, text)) if text.is_empty() => {
            let mut text: *const c_char = std::ptr::null();
            match driver!(cuGetErrorString(code, &raw mut text)) {
                Ok(()) if !text.is_null() => return text,
                _ => name(code),
            }
        }
        Some((_, text)) => text,
    };
    text.as_ptr()
}

macro_rules! errors {
    ($($code:literal = $name:literal, $text:literal;)*) => {
        /// Name and text of an error; the text is empty where the driver has it.
        fn row(code: c_int) -> Option<(&'static CStr, &'static CStr)> {
            Some(match code {
                $($code => ($name, $text),)*
                _ => return None,
            })
        }
    };
}

errors! {
0 = c"cudaSuccess", c"";
1 = c"cudaErrorInvalidValue", c"";
2 = c"cudaErrorMemoryAllocation", c"";
3 = c"cudaErrorInitializationError", c"";
4 = c"cudaErrorCudartUnloading", c"";
5 = c"cudaErrorProfilerDisabled", c"";
6 = c"cudaErrorProfilerNotInitialized", c"";
7 = c"cudaErrorProfilerAlreadyStarted", c"";
8 = c"cudaErrorProfilerAlreadyStopped", c"";
9 = c"cudaErrorInvalidConfiguration", c"invalid configuration argument";
10 = c"cudaErrorVersionTranslation", c"unrecognized version of a structure";
12 = c"cudaErrorInvalidPitchValue", c"invalid pitch argument";
13 = c"cudaErrorInvalidSymbol", c"invalid device symbol";
16 = c"cudaErrorInvalidHostPointer", c"invalid host pointer";
17 = c"cudaErrorInvalidDevicePointer", c"invalid device pointer";
18 = c"cudaErrorInvalidTexture", c"invalid texture reference";
19 = c"cudaErrorInvalidTextureBinding", c"invalid texture binding";
20 = c"cudaErrorInvalidChannelDescriptor", c"invalid channel descriptor";
21 = c"cudaErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy";
22 = c"cudaErrorAddressOfConstant", c"address of a constant";
23 = c"cudaErrorTextureFetchFailed", c"texture fetch failed";
24 = c"cudaErrorTextureNotBound", c"texture is not bound to a pointer";
25 = c"cudaErrorSynchronizationError", c"synchronization error";
26 = c"cudaErrorInvalidFilterSetting", c"linear filtering of a type that is not floating point";
27 = c"cudaErrorInvalidNormSetting", c"normalized reads of a type that is not an integer";
28 = c"cudaErrorMixedDeviceExecution", c"mixed device execution";
31 = c"cudaErrorNotYetImplemented", c"function is not implemented";
32 = c"cudaErrorMemoryValueTooLarge", c"memory value is too large";
34 = c"cudaErrorStubLibrary", c"";
35 = c"cudaErrorInsufficientDriver", c"CUDA driver version is insufficient for CUDA runtime version";
36 = c"cudaErrorCallRequiresNewerDriver", c"";
37 = c"cudaErrorInvalidSurface", c"invalid surface reference";
43 = c"cudaErrorDuplicateVariableName", c"duplicate global variable";
44 = c"cudaErrorDuplicateTextureName", c"duplicate texture reference";
45 = c"cudaErrorDuplicateSurfaceName", c"duplicate surface reference";
46 = c"cudaErrorDevicesUnavailable", c"";
49 = c"cudaErrorIncompatibleDriverContext", c"the context of the driver is incompatible with the runtime";
52 = c"cudaErrorMissingConfiguration", c"launch without a configuration";
53 = c"cudaErrorPriorLaunchFailure", c"an earlier launch has failed";
65 = c"cudaErrorLaunchMaxDepthExceeded", c"launches are nested too deeply";
66 = c"cudaErrorLaunchFileScopedTex", c"launch uses a texture of file scope";
67 = c"cudaErrorLaunchFileScopedSurf", c"launch uses a surface of file scope";
68 = c"cudaErrorSyncDepthExceeded", c"synchronization is nested too deeply";
69 = c"cudaErrorLaunchPendingCountExceeded", c"too many launches are pending";
98 = c"cudaErrorInvalidDeviceFunction", c"invalid device function";
100 = c"cudaErrorNoDevice", c"";
101 = c"cudaErrorInvalidDevice", c"";
102 = c"cudaErrorDeviceNotLicensed", c"";
103 = c"cudaErrorSoftwareValidityNotEstablished", c"integrity of the software is not established";
127 = c"cudaErrorStartupFailure", c"startup failure in the CUDA runtime";
200 = c"cudaErrorInvalidKernelImage", c"";
201 = c"cudaErrorDeviceUninitialized", c"";
205 = c"cudaErrorMapBufferObjectFailed", c"";
206 = c"cudaErrorUnmapBufferObjectFailed", c"";
207 = c"cudaErrorArrayIsMapped", c"";
208 = c"cudaErrorAlreadyMapped", c"";
209 = c"cudaErrorNoKernelImageForDevice", c"";
210 = c"cudaErrorAlreadyAcquired", c"";
211 = c"cudaErrorNotMapped", c"";
212 = c"cudaErrorNotMappedAsArray", c"";
213 = c"cudaErrorNotMappedAsPointer", c"";
214 = c"cudaErrorECCUncorrectable", c"";
215 = c"cudaErrorUnsupportedLimit", c"";
216 = c"cudaErrorDeviceAlreadyInUse", c"";
217 = c"cudaErrorPeerAccessUnsupported", c"";
218 = c"cudaErrorInvalidPtx", c"";
219 = c"cudaErrorInvalidGraphicsContext", c"";
220 = c"cudaErrorNvlinkUncorrectable", c"";
221 = c"cudaErrorJitCompilerNotFound", c"";
222 = c"cudaErrorUnsupportedPtxVersion", c"";
223 = c"cudaErrorJitCompilationDisabled", c"";
224 = c"cudaErrorUnsupportedExecAffinity", c"";
225 = c"cudaErrorUnsupportedDevSideSync", c"";
226 = c"cudaErrorContained", c"";
227 = c"cudaErrorInsufficientLoaderVersion", c"";
300 = c"cudaErrorInvalidSource", c"";
301 = c"cudaErrorFileNotFound", c"";
302 = c"cudaErrorSharedObjectSymbolNotFound", c"";
303 = c"cudaErrorSharedObjectInitFailed", c"";
304 = c"cudaErrorOperatingSystem", c"";
400 = c"cudaErrorInvalidResourceHandle", c"";
401 = c"cudaErrorIllegalState", c"";
402 = c"cudaErrorLossyQuery", c"";
500 = c"cudaErrorSymbolNotFound", c"";
600 = c"cudaErrorNotReady", c"";
700 = c"cudaErrorIllegalAddress", c"";
701 = c"cudaErrorLaunchOutOfResources", c"";
702 = c"cudaErrorLaunchTimeout", c"";
703 = c"cudaErrorLaunchIncompatibleTexturing", c"";
704 = c"cudaErrorPeerAccessAlreadyEnabled", c"";
705 = c"cudaErrorPeerAccessNotEnabled", c"";
708 = c"cudaErrorSetOnActiveProcess", c"";
709 = c"cudaErrorContextIsDestroyed", c"";
710 = c"cudaErrorAssert", c"";
711 = c"cudaErrorTooManyPeers", c"";
712 = c"cudaErrorHostMemoryAlreadyRegistered", c"";
713 = c"cudaErrorHostMemoryNotRegistered", c"";
714 = c"cudaErrorHardwareStackError", c"";
715 = c"cudaErrorIllegalInstruction", c"";
716 = c"cudaErrorMisalignedAddress", c"";
717 = c"cudaErrorInvalidAddressSpace", c"";
718 = c"cudaErrorInvalidPc", c"";
719 = c"cudaErrorLaunchFailure", c"";
720 = c"cudaErrorCooperativeLaunchTooLarge", c"";
721 = c"cudaErrorTensorMemoryLeak", c"";
800 = c"cudaErrorNotPermitted", c"";
801 = c"cudaErrorNotSupported", c"";
802 = c"cudaErrorSystemNotReady", c"";
803 = c"cudaErrorSystemDriverMismatch", c"";
804 = c"cudaErrorCompatNotSupportedOnDevice", c"";
805 = c"cudaErrorMpsConnectionFailed", c"";
806 = c"cudaErrorMpsRpcFailure", c"";
807 = c"cudaErrorMpsServerNotReady", c"";
808 = c"cudaErrorMpsMaxClientsReached", c"";
809 = c"cudaErrorMpsMaxConnectionsReached", c"";
810 = c"cudaErrorMpsClientTerminated", c"";
811 = c"cudaErrorCdpNotSupported", c"";
812 = c"cudaErrorCdpVersionMismatch", c"";
900 = c"cudaErrorStreamCaptureUnsupported", c"";
901 = c"cudaErrorStreamCaptureInvalidated", c"";
902 = c"cudaErrorStreamCaptureMerge", c"";
903 = c"cudaErrorStreamCaptureUnmatched", c"";
904 = c"cudaErrorStreamCaptureUnjoined", c"";
905 = c"cudaErrorStreamCaptureIsolation", c"";
906 = c"cudaErrorStreamCaptureImplicit", c"";
907 = c"cudaErrorCapturedEvent", c"";
908 = c"cudaErrorStreamCaptureWrongThread", c"";
909 = c"cudaErrorTimeout", c"";
910 = c"cudaErrorGraphExecUpdateFailure", c"";
911 = c"cudaErrorExternalDevice", c"";
912 = c"cudaErrorInvalidClusterSize", c"";
913 = c"cudaErrorFunctionNotLoaded", c"";
914 = c"cudaErrorInvalidResourceType", c"";
915 = c"cudaErrorInvalidResourceConfiguration", c"";
917 = c"cudaErrorStreamDetached", c"";
918 = c"cudaErrorGraphRecaptureFailure", c"";
919 = c"cudaErrorFabricNotReady", c"";
999 = c"cudaErrorUnknown", c"";
10000 = c"cudaErrorApiFailureBase", c"failure of the interface";}
