"""What a SPIR-V module's capabilities, extensions and version need of a Vulkan device.

The two tables restate facts of the Vulkan specification's appendix "Vulkan Environment for SPIR-V" (sections
"Versions and Formats", "Capabilities" and "Extensions", release 1.4.359) and of the registry behind it, vk.xml.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ..status import InternalError
from .reflection_types import ShaderModuleReflection

__all__ = [
    "Alternative",
    "CapabilityRequirement",
    "capability_name",
    "capability_requirements",
    "extension_requirements",
    "missing_requirements",
]

# One capability a line: number, SPIR-V name, then what gives it, any one of the alternatives between bars:
#   shaderInt64             a feature, named as in the Vulkan structures, or a boolean property of float controls
#   shaderInt8@1.2,VK_…     the same, with the core version and extensions that define it
#   subgroup:ballot         an operation in VkPhysicalDeviceSubgroupProperties::supportedOperations
#   1.1 or VK_…             a core version or an extension, enough by itself
#   -                       nothing does: not allowed in Vulkan
# A line that starts with a space goes on with the one before.
_CAPABILITIES: Final = """
0 Matrix 1.0
1 Shader 1.0
2 Geometry geometryShader
3 Tessellation tessellationShader
4 Addresses -
5 Linkage -
6 Kernel -
7 Vector16 -
8 Float16Buffer -
9 Float16 shaderFloat16@1.2,VK_KHR_shader_float16_int8 | VK_AMD_gpu_shader_half_float
10 Float64 shaderFloat64
11 Int64 shaderInt64
12 Int64Atomics shaderBufferInt64Atomics@1.2,VK_KHR_shader_atomic_int64 |
    shaderSharedInt64Atomics@1.2,VK_KHR_shader_atomic_int64 |
    shaderImageInt64Atomics@VK_EXT_shader_image_atomic_int64
13 ImageBasic -
14 ImageReadWrite -
15 ImageMipmap -
17 Pipes -
18 Groups -
19 DeviceEnqueue -
20 LiteralSampler -
21 AtomicStorage -
22 Int16 shaderInt16
23 TessellationPointSize shaderTessellationAndGeometryPointSize
24 GeometryPointSize shaderTessellationAndGeometryPointSize
25 ImageGatherExtended shaderImageGatherExtended
27 StorageImageMultisample shaderStorageImageMultisample
28 UniformBufferArrayDynamicIndexing shaderUniformBufferArrayDynamicIndexing
29 SampledImageArrayDynamicIndexing shaderSampledImageArrayDynamicIndexing
30 StorageBufferArrayDynamicIndexing shaderStorageBufferArrayDynamicIndexing
31 StorageImageArrayDynamicIndexing shaderStorageImageArrayDynamicIndexing
32 ClipDistance shaderClipDistance
33 CullDistance shaderCullDistance
34 ImageCubeArray imageCubeArray
35 SampleRateShading sampleRateShading
36 ImageRect -
37 SampledRect -
38 GenericPointer -
39 Int8 shaderInt8@1.2,VK_KHR_shader_float16_int8
40 InputAttachment 1.0
41 SparseResidency shaderResourceResidency
42 MinLod shaderResourceMinLod
43 Sampled1D 1.0
44 Image1D 1.0
45 SampledCubeArray imageCubeArray
46 SampledBuffer 1.0
47 ImageBuffer 1.0
48 ImageMSArray shaderStorageImageMultisample
49 StorageImageExtendedFormats 1.0
50 ImageQuery 1.0
51 DerivativeControl 1.0
52 InterpolationFunction sampleRateShading
53 TransformFeedback transformFeedback@VK_EXT_transform_feedback
54 GeometryStreams geometryStreams@VK_EXT_transform_feedback
55 StorageImageReadWithoutFormat shaderStorageImageReadWithoutFormat | 1.3 | VK_KHR_format_feature_flags2
56 StorageImageWriteWithoutFormat shaderStorageImageWriteWithoutFormat | 1.3 | VK_KHR_format_feature_flags2
57 MultiViewport multiViewport
58 SubgroupDispatch -
59 NamedBarrier -
60 PipeStorage -
61 GroupNonUniform subgroup:basic@1.1
62 GroupNonUniformVote subgroup:vote@1.1
63 GroupNonUniformArithmetic subgroup:arithmetic@1.1
64 GroupNonUniformBallot subgroup:ballot@1.1
65 GroupNonUniformShuffle subgroup:shuffle@1.1
66 GroupNonUniformShuffleRelative subgroup:shuffle_relative@1.1
67 GroupNonUniformClustered subgroup:clustered@1.1
68 GroupNonUniformQuad subgroup:quad@1.1
69 ShaderLayer shaderOutputLayer@1.2
70 ShaderViewportIndex shaderOutputViewportIndex@1.2
71 UniformDecoration -
4165 CoreBuiltinsARM shaderCoreBuiltins@VK_ARM_shader_core_builtins
4166 TileImageColorReadAccessEXT shaderTileImageColorReadAccess@VK_EXT_shader_tile_image
4167 TileImageDepthReadAccessEXT shaderTileImageDepthReadAccess@VK_EXT_shader_tile_image
4168 TileImageStencilReadAccessEXT shaderTileImageStencilReadAccess@VK_EXT_shader_tile_image
4174 TensorsARM shaderTensorAccess@VK_ARM_tensors
4175 StorageTensorArrayDynamicIndexingARM shaderStorageTensorArrayDynamicIndexing@VK_ARM_tensors
4176 StorageTensorArrayNonUniformIndexingARM shaderStorageTensorArrayNonUniformIndexing@VK_ARM_tensors
4191 GraphARM dataGraph@VK_ARM_data_graph
4212 Float8EXT shaderFloat8@VK_EXT_shader_float8
4213 Float8CooperativeMatrixEXT shaderFloat8CooperativeMatrix@VK_EXT_shader_float8
4228 Float6EXT shaderFloat6@VK_EXT_shader_ocp_microscaling_types
4229 Float4EXT shaderFloat4@VK_EXT_shader_ocp_microscaling_types
4230 Float8UnsignedE8M0EXT shaderFloat8UnsignedE8M0@VK_EXT_shader_ocp_microscaling_types
4231 MXInt8EXT shaderMXInt8@VK_EXT_shader_ocp_microscaling_types
4232 BitcastExtractEXT shaderFloat4@VK_EXT_shader_ocp_microscaling_types |
    shaderFloat6@VK_EXT_shader_ocp_microscaling_types
4422 FragmentShadingRateKHR pipelineFragmentShadingRate@VK_KHR_fragment_shading_rate |
    primitiveFragmentShadingRate@VK_KHR_fragment_shading_rate |
    attachmentFragmentShadingRate@VK_KHR_fragment_shading_rate
4423 SubgroupBallotKHR VK_EXT_shader_subgroup_ballot
4427 DrawParameters shaderDrawParameters@1.1 | VK_KHR_shader_draw_parameters
4428 WorkgroupMemoryExplicitLayoutKHR workgroupMemoryExplicitLayout@VK_KHR_workgroup_memory_explicit_layout
4429 WorkgroupMemoryExplicitLayout8BitAccessKHR
    workgroupMemoryExplicitLayout8BitAccess@VK_KHR_workgroup_memory_explicit_layout
4430 WorkgroupMemoryExplicitLayout16BitAccessKHR
    workgroupMemoryExplicitLayout16BitAccess@VK_KHR_workgroup_memory_explicit_layout
4431 SubgroupVoteKHR VK_EXT_shader_subgroup_vote
4433 StorageBuffer16BitAccess storageBuffer16BitAccess@1.1,VK_KHR_16bit_storage
4434 UniformAndStorageBuffer16BitAccess uniformAndStorageBuffer16BitAccess@1.1,VK_KHR_16bit_storage
4435 StoragePushConstant16 storagePushConstant16@1.1,VK_KHR_16bit_storage
4436 StorageInputOutput16 storageInputOutput16@1.1,VK_KHR_16bit_storage
4437 DeviceGroup 1.1 | VK_KHR_device_group
4439 MultiView multiview@1.1,VK_KHR_multiview
4441 VariablePointersStorageBuffer variablePointersStorageBuffer@1.1,VK_KHR_variable_pointers
4442 VariablePointers variablePointers@1.1,VK_KHR_variable_pointers
4447 SampleMaskPostDepthCoverage VK_EXT_post_depth_coverage
4448 StorageBuffer8BitAccess storageBuffer8BitAccess@1.2,VK_KHR_8bit_storage
4449 UniformAndStorageBuffer8BitAccess uniformAndStorageBuffer8BitAccess@1.2,VK_KHR_8bit_storage
4450 StoragePushConstant8 storagePushConstant8@1.2,VK_KHR_8bit_storage
4464 DenormPreserve shaderDenormPreserveFloat16@1.2,VK_KHR_shader_float_controls |
    shaderDenormPreserveFloat32@1.2,VK_KHR_shader_float_controls |
    shaderDenormPreserveFloat64@1.2,VK_KHR_shader_float_controls
4465 DenormFlushToZero shaderDenormFlushToZeroFloat16@1.2,VK_KHR_shader_float_controls |
    shaderDenormFlushToZeroFloat32@1.2,VK_KHR_shader_float_controls |
    shaderDenormFlushToZeroFloat64@1.2,VK_KHR_shader_float_controls
4466 SignedZeroInfNanPreserve shaderSignedZeroInfNanPreserveFloat16@1.2,VK_KHR_shader_float_controls |
    shaderSignedZeroInfNanPreserveFloat32@1.2,VK_KHR_shader_float_controls |
    shaderSignedZeroInfNanPreserveFloat64@1.2,VK_KHR_shader_float_controls
4467 RoundingModeRTE shaderRoundingModeRTEFloat16@1.2,VK_KHR_shader_float_controls |
    shaderRoundingModeRTEFloat32@1.2,VK_KHR_shader_float_controls |
    shaderRoundingModeRTEFloat64@1.2,VK_KHR_shader_float_controls
4468 RoundingModeRTZ shaderRoundingModeRTZFloat16@1.2,VK_KHR_shader_float_controls |
    shaderRoundingModeRTZFloat32@1.2,VK_KHR_shader_float_controls |
    shaderRoundingModeRTZFloat64@1.2,VK_KHR_shader_float_controls
4472 RayQueryKHR rayQuery@VK_KHR_ray_query
4473 UntypedPointersKHR shaderUntypedPointers@VK_KHR_shader_untyped_pointers
4478 RayTraversalPrimitiveCullingKHR rayTraversalPrimitiveCulling@VK_KHR_ray_tracing_pipeline |
    rayQuery@VK_KHR_ray_query
4479 RayTracingKHR rayTracingPipeline@VK_KHR_ray_tracing_pipeline
4484 TextureSampleWeightedQCOM textureSampleWeighted@VK_QCOM_image_processing
4485 TextureBoxFilterQCOM textureBoxFilter@VK_QCOM_image_processing
4486 TextureBlockMatchQCOM textureBlockMatch@VK_QCOM_image_processing
4495 TileShadingQCOM tileShading@VK_QCOM_tile_shading
4496 CooperativeMatrixConversionQCOM cooperativeMatrixConversion@VK_QCOM_cooperative_matrix_conversion
4498 TextureBlockMatch2QCOM textureBlockMatch2@VK_QCOM_image_processing2
4539 MultipleWaitQueuesQCOM shaderMultipleWaitQueues@VK_QCOM_shader_multiple_wait_queues
4543 ImageGatherLinearQCOM imageGatherLinear@VK_QCOM_image_processing3
4544 ImageGatherExtendedModesQCOM imageGatherExtendedModes@VK_QCOM_image_processing3
5009 ImageGatherBiasLodAMD VK_AMD_texture_gather_bias_lod
5010 FragmentMaskAMD VK_AMD_shader_fragment_mask
5013 StencilExportEXT VK_EXT_shader_stencil_export
5015 ImageReadWriteLodAMD VK_AMD_shader_image_load_store_lod
5016 Int64ImageEXT shaderImageInt64Atomics@VK_EXT_shader_image_atomic_int64
5055 ShaderClockKHR VK_KHR_shader_clock
5067 ShaderEnqueueAMDX shaderEnqueue@VK_AMDX_shader_enqueue
5087 QuadControlKHR shaderQuadControl@VK_KHR_shader_quad_control
5116 BFloat16TypeKHR shaderBFloat16Type@VK_KHR_shader_bfloat16
5117 BFloat16DotProductKHR shaderBFloat16DotProduct@VK_KHR_shader_bfloat16
5118 BFloat16CooperativeMatrixKHR shaderBFloat16CooperativeMatrix@VK_KHR_shader_bfloat16
5120 AbortKHR shaderAbort@VK_KHR_shader_abort
5128 DescriptorHeapEXT descriptorHeap@VK_EXT_descriptor_heap
5146 ConstantDataKHR shaderConstantData@VK_KHR_shader_constant_data
5249 SampleMaskOverrideCoverageNV VK_NV_sample_mask_override_coverage
5251 GeometryShaderPassthroughNV VK_NV_geometry_shader_passthrough
5254 ShaderViewportIndexLayerEXT VK_EXT_shader_viewport_index_layer | VK_NV_viewport_array2
5255 ShaderViewportMaskNV VK_NV_viewport_array2
5260 PerViewAttributesNV VK_NVX_multiview_per_view_attributes
5265 FragmentFullyCoveredEXT VK_EXT_conservative_rasterization
5266 MeshShadingNV VK_NV_mesh_shader
5282 ImageFootprintNV imageFootprint@VK_NV_shader_image_footprint
5283 MeshShadingEXT VK_EXT_mesh_shader
5284 FragmentBarycentricKHR
    fragmentShaderBarycentric@VK_KHR_fragment_shader_barycentric,VK_NV_fragment_shader_barycentric
5288 ComputeDerivativeGroupQuadsKHR
    computeDerivativeGroupQuads@VK_KHR_compute_shader_derivatives,VK_NV_compute_shader_derivatives
5291 FragmentDensityEXT fragmentDensityMap@VK_EXT_fragment_density_map | shadingRateImage@VK_NV_shading_rate_image
5297 GroupNonUniformPartitionedEXT shaderSubgroupPartitioned@VK_EXT_shader_subgroup_partitioned |
    subgroup:partitioned@VK_NV_shader_subgroup_partitioned
5301 ShaderNonUniform 1.2 | VK_EXT_descriptor_indexing
5302 RuntimeDescriptorArray runtimeDescriptorArray@1.2,VK_EXT_descriptor_indexing
5303 InputAttachmentArrayDynamicIndexing shaderInputAttachmentArrayDynamicIndexing@1.2,VK_EXT_descriptor_indexing
5304 UniformTexelBufferArrayDynamicIndexing
    shaderUniformTexelBufferArrayDynamicIndexing@1.2,VK_EXT_descriptor_indexing
5305 StorageTexelBufferArrayDynamicIndexing
    shaderStorageTexelBufferArrayDynamicIndexing@1.2,VK_EXT_descriptor_indexing
5306 UniformBufferArrayNonUniformIndexing shaderUniformBufferArrayNonUniformIndexing@1.2,VK_EXT_descriptor_indexing
5307 SampledImageArrayNonUniformIndexing shaderSampledImageArrayNonUniformIndexing@1.2,VK_EXT_descriptor_indexing
5308 StorageBufferArrayNonUniformIndexing shaderStorageBufferArrayNonUniformIndexing@1.2,VK_EXT_descriptor_indexing
5309 StorageImageArrayNonUniformIndexing shaderStorageImageArrayNonUniformIndexing@1.2,VK_EXT_descriptor_indexing
5310 InputAttachmentArrayNonUniformIndexing
    shaderInputAttachmentArrayNonUniformIndexing@1.2,VK_EXT_descriptor_indexing
5311 UniformTexelBufferArrayNonUniformIndexing
    shaderUniformTexelBufferArrayNonUniformIndexing@1.2,VK_EXT_descriptor_indexing
5312 StorageTexelBufferArrayNonUniformIndexing
    shaderStorageTexelBufferArrayNonUniformIndexing@1.2,VK_EXT_descriptor_indexing
5336 RayTracingPositionFetchKHR rayTracingPositionFetch@VK_KHR_ray_tracing_position_fetch
5340 RayTracingNV VK_NV_ray_tracing
5341 RayTracingMotionBlurNV rayTracingMotionBlur@VK_NV_ray_tracing_motion_blur
5345 VulkanMemoryModel vulkanMemoryModel@1.2,VK_KHR_vulkan_memory_model
5346 VulkanMemoryModelDeviceScope vulkanMemoryModelDeviceScope@1.2,VK_KHR_vulkan_memory_model
5347 PhysicalStorageBufferAddresses
    bufferDeviceAddress@1.2,VK_EXT_buffer_device_address,VK_KHR_buffer_device_address
5350 ComputeDerivativeGroupLinearKHR
    computeDerivativeGroupLinear@VK_KHR_compute_shader_derivatives,VK_NV_compute_shader_derivatives
5357 CooperativeMatrixNV cooperativeMatrix@VK_NV_cooperative_matrix
5363 FragmentShaderSampleInterlockEXT fragmentShaderSampleInterlock@VK_EXT_fragment_shader_interlock
5372 FragmentShaderShadingRateInterlockEXT fragmentShaderShadingRateInterlock@VK_EXT_fragment_shader_interlock |
    shadingRateImage@VK_NV_shading_rate_image
5373 ShaderSMBuiltinsNV shaderSMBuiltins@VK_NV_shader_sm_builtins
5378 FragmentShaderPixelInterlockEXT fragmentShaderPixelInterlock@VK_EXT_fragment_shader_interlock
5379 DemoteToHelperInvocation shaderDemoteToHelperInvocation@1.3,VK_EXT_shader_demote_to_helper_invocation
5381 RayTracingOpacityMicromapKHR VK_EXT_opacity_micromap | micromap@VK_KHR_opacity_micromap
5383 ShaderInvocationReorderNV VK_NV_ray_tracing_invocation_reorder
5388 ShaderInvocationReorderEXT VK_EXT_ray_tracing_invocation_reorder
5391 RayQueryPositionFetchKHR rayTracingPositionFetch@VK_KHR_ray_tracing_position_fetch
5394 CooperativeVectorNV cooperativeVector@VK_NV_cooperative_vector
5404 AtomicFloat16VectorNV shaderFloat16VectorAtomics@VK_NV_shader_atomic_float16_vector
5414 RawAccessChainsNV shaderRawAccessChains@VK_NV_raw_access_chains
5418 RayTracingSpheresGeometryNV spheres@VK_NV_ray_tracing_linear_swept_spheres
5419 RayTracingLinearSweptSpheresGeometryNV linearSweptSpheres@VK_NV_ray_tracing_linear_swept_spheres
5423 PushConstantBanksNV pushConstantBank@VK_NV_push_constant_bank
5425 LongVectorEXT longVector@VK_EXT_shader_long_vector
5426 Shader64BitIndexingEXT shader64BitIndexing@VK_EXT_shader_64bit_indexing
5429 CooperativeMatrixConversionsEXT cooperativeMatrixConversions@VK_EXT_cooperative_matrix_maintenance1
5430 CooperativeMatrixReductionsEXT cooperativeMatrixReductions@VK_EXT_cooperative_matrix_maintenance1 |
    cooperativeMatrixReductions@VK_NV_cooperative_matrix2
5431 CooperativeMatrixConversionsNV cooperativeMatrixConversions@VK_NV_cooperative_matrix2
5432 CooperativeMatrixPerElementOperationsEXT
    cooperativeMatrixPerElementOperations@VK_EXT_cooperative_matrix_maintenance1 |
    cooperativeMatrixPerElementOperations@VK_NV_cooperative_matrix2
5433 CooperativeMatrixTensorAddressingNV cooperativeMatrixTensorAddressing@VK_NV_cooperative_matrix2
5434 CooperativeMatrixBlockLoadsNV cooperativeMatrixBlockLoads@VK_NV_cooperative_matrix2
5435 CooperativeVectorTrainingNV cooperativeVectorTraining@VK_NV_cooperative_vector
5437 RayTracingClusterAccelerationStructureNV clusterAccelerationStructure@VK_NV_cluster_acceleration_structure
5438 CooperativeMatrixGetCoordinateEXT cooperativeMatrixGetCoordinate@VK_EXT_cooperative_matrix_maintenance1
5439 TensorAddressingNV cooperativeMatrixTensorAddressing@VK_NV_cooperative_matrix2
5447 CooperativeMatrixDecodeVectorNV cooperativeMatrixDecodeVector@VK_NV_cooperative_matrix_decode_vector
5584 IntegerFunctions2INTEL shaderIntegerFunctions2@VK_INTEL_shader_integer_functions2
5612 AtomicFloat32MinMaxEXT shaderBufferFloat32AtomicMinMax@VK_EXT_shader_atomic_float2 |
    shaderSharedFloat32AtomicMinMax@VK_EXT_shader_atomic_float2 |
    shaderImageFloat32AtomicMinMax@VK_EXT_shader_atomic_float2
5613 AtomicFloat64MinMaxEXT shaderBufferFloat64AtomicMinMax@VK_EXT_shader_atomic_float2 |
    shaderSharedFloat64AtomicMinMax@VK_EXT_shader_atomic_float2
5616 AtomicFloat16MinMaxEXT shaderBufferFloat16AtomicMinMax@VK_EXT_shader_atomic_float2 |
    shaderSharedFloat16AtomicMinMax@VK_EXT_shader_atomic_float2
5629 ExpectAssumeKHR shaderExpectAssume@1.4,VK_KHR_shader_expect_assume
6016 DotProductInputAll shaderIntegerDotProduct@1.3,VK_KHR_shader_integer_dot_product
6017 DotProductInput4x8Bit shaderIntegerDotProduct@1.3,VK_KHR_shader_integer_dot_product
6018 DotProductInput4x8BitPacked shaderIntegerDotProduct@1.3,VK_KHR_shader_integer_dot_product
6019 DotProduct shaderIntegerDotProduct@1.3,VK_KHR_shader_integer_dot_product
6020 RayCullMaskKHR rayTracingMaintenance1@VK_KHR_ray_tracing_maintenance1
6022 CooperativeMatrixKHR cooperativeMatrix@VK_KHR_cooperative_matrix
6024 ReplicatedCompositesEXT shaderReplicatedComposites@VK_EXT_shader_replicated_composites
6026 GroupNonUniformRotateKHR shaderSubgroupRotate@1.4,VK_KHR_shader_subgroup_rotate
6029 FloatControls2 shaderFloatControls2@1.4,VK_KHR_shader_float_controls2
6030 FMAKHR shaderFmaFloat16@VK_KHR_shader_fma | shaderFmaFloat32@VK_KHR_shader_fma |
    shaderFmaFloat64@VK_KHR_shader_fma
6032 RayTracingOpacityMicromapExecutionModeKHR micromap@VK_KHR_opacity_micromap
6033 AtomicFloat32AddEXT shaderBufferFloat32AtomicAdd@VK_EXT_shader_atomic_float |
    shaderSharedFloat32AtomicAdd@VK_EXT_shader_atomic_float | shaderImageFloat32AtomicAdd@VK_EXT_shader_atomic_float
6034 AtomicFloat64AddEXT shaderBufferFloat64AtomicAdd@VK_EXT_shader_atomic_float |
    shaderSharedFloat64AtomicAdd@VK_EXT_shader_atomic_float
6095 AtomicFloat16AddEXT shaderBufferFloat16AtomicAdd@VK_EXT_shader_atomic_float2 |
    shaderSharedFloat16AtomicAdd@VK_EXT_shader_atomic_float2
6141 SplitBarrierEXT shaderSplitBarrier@VK_EXT_shader_split_barrier
6912 DotProductFloat16AccFloat32VALVE
    shaderMixedFloatDotProductFloat16AccFloat32@VK_VALVE_shader_mixed_float_dot_product
6913 DotProductFloat16AccFloat16VALVE
    shaderMixedFloatDotProductFloat16AccFloat16@VK_VALVE_shader_mixed_float_dot_product
6914 DotProductBFloat16AccVALVE shaderMixedFloatDotProductBFloat16Acc@VK_VALVE_shader_mixed_float_dot_product
6915 DotProductFloat8AccFloat32VALVE
    shaderMixedFloatDotProductFloat8AccFloat32@VK_VALVE_shader_mixed_float_dot_product
"""

# One SPIR-V extension a line, and the core version or extensions that allow it.
_EXTENSIONS: Final = """
SPV_AMD_gcn_shader VK_AMD_gcn_shader
SPV_AMD_gpu_shader_half_float VK_AMD_gpu_shader_half_float
SPV_AMD_gpu_shader_int16 VK_AMD_gpu_shader_int16
SPV_AMD_shader_ballot VK_AMD_shader_ballot
SPV_AMD_shader_early_and_late_fragment_tests VK_AMD_shader_early_and_late_fragment_tests
SPV_AMD_shader_explicit_vertex_parameter VK_AMD_shader_explicit_vertex_parameter
SPV_AMD_shader_fragment_mask VK_AMD_shader_fragment_mask
SPV_AMD_shader_image_load_store_lod VK_AMD_shader_image_load_store_lod
SPV_AMD_shader_trinary_minmax VK_AMD_shader_trinary_minmax
SPV_AMD_texture_gather_bias_lod VK_AMD_texture_gather_bias_lod
SPV_ARM_core_builtins VK_ARM_shader_core_builtins
SPV_ARM_graph VK_ARM_data_graph
SPV_ARM_tensors VK_ARM_tensors
SPV_EXT_cooperative_matrix_maintenance1 VK_EXT_cooperative_matrix_maintenance1
SPV_EXT_demote_to_helper_invocation 1.3 | VK_EXT_shader_demote_to_helper_invocation
SPV_EXT_descriptor_heap VK_EXT_descriptor_heap
SPV_EXT_descriptor_indexing 1.2 | VK_EXT_descriptor_indexing
SPV_EXT_float8 VK_EXT_shader_float8
SPV_EXT_fragment_fully_covered VK_EXT_conservative_rasterization
SPV_EXT_fragment_invocation_density VK_EXT_fragment_density_map
SPV_EXT_fragment_shader_interlock VK_EXT_fragment_shader_interlock
SPV_EXT_long_vector VK_EXT_shader_long_vector
SPV_EXT_mesh_shader VK_EXT_mesh_shader
SPV_EXT_ocp_microscaling_types VK_EXT_shader_ocp_microscaling_types
SPV_EXT_opacity_micromap VK_EXT_opacity_micromap | VK_KHR_opacity_micromap
SPV_EXT_physical_storage_buffer VK_EXT_buffer_device_address
SPV_EXT_replicated_composites VK_EXT_shader_replicated_composites
SPV_EXT_shader_64bit_indexing VK_EXT_shader_64bit_indexing
SPV_EXT_shader_atomic_float16_add VK_EXT_shader_atomic_float2
SPV_EXT_shader_atomic_float_add VK_EXT_shader_atomic_float
SPV_EXT_shader_atomic_float_min_max VK_EXT_shader_atomic_float2
SPV_EXT_shader_image_int64 VK_EXT_shader_image_atomic_int64
SPV_EXT_shader_invocation_reorder VK_EXT_ray_tracing_invocation_reorder
SPV_EXT_shader_stencil_export VK_EXT_shader_stencil_export
SPV_EXT_shader_subgroup_partitioned VK_EXT_shader_subgroup_partitioned
SPV_EXT_shader_tile_image VK_EXT_shader_tile_image
SPV_EXT_shader_viewport_index_layer 1.2 | VK_EXT_shader_viewport_index_layer
SPV_EXT_split_barrier VK_EXT_shader_split_barrier
SPV_GOOGLE_decorate_string VK_GOOGLE_decorate_string
SPV_GOOGLE_hlsl_functionality1 VK_GOOGLE_hlsl_functionality1
SPV_GOOGLE_user_type VK_GOOGLE_user_type
SPV_HUAWEI_cluster_culling_shader VK_HUAWEI_cluster_culling_shader
SPV_HUAWEI_subpass_shading VK_HUAWEI_subpass_shading
SPV_INTEL_shader_integer_functions2 VK_INTEL_shader_integer_functions2
SPV_KHR_16bit_storage 1.1 | VK_KHR_16bit_storage
SPV_KHR_8bit_storage 1.2 | VK_KHR_8bit_storage
SPV_KHR_abort VK_KHR_shader_abort
SPV_KHR_bfloat16 VK_KHR_shader_bfloat16
SPV_KHR_compute_shader_derivatives VK_KHR_compute_shader_derivatives
SPV_KHR_constant_data VK_KHR_shader_constant_data
SPV_KHR_cooperative_matrix VK_KHR_cooperative_matrix
SPV_KHR_device_group 1.1 | VK_KHR_device_group
SPV_KHR_expect_assume 1.4 | VK_KHR_shader_expect_assume
SPV_KHR_float_controls 1.2 | VK_KHR_shader_float_controls
SPV_KHR_float_controls2 1.4 | VK_KHR_shader_float_controls2
SPV_KHR_fma VK_KHR_shader_fma
SPV_KHR_fragment_shader_barycentric VK_KHR_fragment_shader_barycentric
SPV_KHR_fragment_shading_rate VK_KHR_fragment_shading_rate
SPV_KHR_integer_dot_product 1.3 | VK_KHR_shader_integer_dot_product
SPV_KHR_maximal_reconvergence VK_KHR_shader_maximal_reconvergence
SPV_KHR_multiview 1.1 | VK_KHR_multiview
SPV_KHR_non_semantic_info 1.3 | VK_KHR_shader_non_semantic_info
SPV_KHR_opacity_micromap VK_KHR_opacity_micromap
SPV_KHR_physical_storage_buffer 1.2 | VK_KHR_buffer_device_address
SPV_KHR_post_depth_coverage VK_EXT_post_depth_coverage
SPV_KHR_quad_control VK_KHR_shader_quad_control
SPV_KHR_ray_cull_mask VK_KHR_ray_tracing_maintenance1
SPV_KHR_ray_query VK_KHR_ray_query
SPV_KHR_ray_tracing VK_KHR_ray_tracing_pipeline
SPV_KHR_ray_tracing_position_fetch VK_KHR_ray_tracing_position_fetch
SPV_KHR_relaxed_extended_instruction VK_KHR_shader_relaxed_extended_instruction
SPV_KHR_shader_ballot VK_EXT_shader_subgroup_ballot
SPV_KHR_shader_clock VK_KHR_shader_clock
SPV_KHR_shader_draw_parameters 1.1 | VK_KHR_shader_draw_parameters
SPV_KHR_storage_buffer_storage_class 1.1 | VK_KHR_storage_buffer_storage_class
SPV_KHR_subgroup_rotate 1.4 | VK_KHR_shader_subgroup_rotate
SPV_KHR_subgroup_uniform_control_flow VK_KHR_shader_subgroup_uniform_control_flow
SPV_KHR_subgroup_vote VK_EXT_shader_subgroup_vote
SPV_KHR_terminate_invocation 1.3 | VK_KHR_shader_terminate_invocation
SPV_KHR_untyped_pointers VK_KHR_shader_untyped_pointers
SPV_KHR_variable_pointers 1.1 | VK_KHR_variable_pointers
SPV_KHR_vulkan_memory_model 1.2 | VK_KHR_vulkan_memory_model
SPV_KHR_workgroup_memory_explicit_layout VK_KHR_workgroup_memory_explicit_layout
SPV_NVX_multiview_per_view_attributes VK_NVX_multiview_per_view_attributes
SPV_NV_cluster_acceleration_structure VK_NV_cluster_acceleration_structure
SPV_NV_compute_shader_derivatives VK_NV_compute_shader_derivatives
SPV_NV_cooperative_matrix VK_NV_cooperative_matrix
SPV_NV_cooperative_matrix2 VK_NV_cooperative_matrix2
SPV_NV_cooperative_matrix_decode_vector VK_NV_cooperative_matrix_decode_vector
SPV_NV_cooperative_vector VK_NV_cooperative_vector
SPV_NV_fragment_shader_barycentric VK_NV_fragment_shader_barycentric
SPV_NV_geometry_shader_passthrough VK_NV_geometry_shader_passthrough
SPV_NV_linear_swept_spheres VK_NV_ray_tracing_linear_swept_spheres
SPV_NV_mesh_shader VK_NV_mesh_shader
SPV_NV_push_constant_bank VK_NV_push_constant_bank
SPV_NV_raw_access_chains VK_NV_raw_access_chains
SPV_NV_ray_tracing VK_NV_ray_tracing
SPV_NV_ray_tracing_motion_blur VK_NV_ray_tracing_motion_blur
SPV_NV_sample_mask_override_coverage VK_NV_sample_mask_override_coverage
SPV_NV_shader_atomic_fp16_vector VK_NV_shader_atomic_float16_vector
SPV_NV_shader_image_footprint VK_NV_shader_image_footprint
SPV_NV_shader_invocation_reorder VK_NV_ray_tracing_invocation_reorder
SPV_NV_shader_sm_builtins VK_NV_shader_sm_builtins
SPV_NV_shader_subgroup_partitioned VK_NV_shader_subgroup_partitioned | VK_EXT_shader_subgroup_partitioned
SPV_NV_shading_rate VK_NV_shading_rate_image
SPV_NV_tensor_addressing VK_NV_cooperative_matrix2
SPV_NV_viewport_array2 VK_NV_viewport_array2
SPV_QCOM_cooperative_matrix_conversion VK_QCOM_cooperative_matrix_conversion
SPV_QCOM_image_processing VK_QCOM_image_processing
SPV_QCOM_image_processing2 VK_QCOM_image_processing2
SPV_QCOM_image_processing3 VK_QCOM_image_processing3
SPV_QCOM_multiple_wait_queues VK_QCOM_shader_multiple_wait_queues
SPV_QCOM_tile_shading VK_QCOM_tile_shading
SPV_VALVE_mixed_float_dot_product VK_VALVE_shader_mixed_float_dot_product
"""

# SPIR-V version -> core version that allows it, and an extension that does so before.
_VERSIONS: Final[dict[tuple[int, int], tuple[tuple[int, int], str]]] = {
    (1, 0): ((1, 0), ""),
    (1, 1): ((1, 1), ""),
    (1, 2): ((1, 1), ""),
    (1, 3): ((1, 1), ""),
    (1, 4): ((1, 2), "VK_KHR_spirv_1_4"),
    (1, 5): ((1, 2), ""),
    (1, 6): ((1, 3), ""),
}
_SUBGROUP: Final = "subgroup:"


@dataclasses.dataclass(frozen=True, slots=True)
class Alternative:
    """One way for a device to allow something; all that it names must hold.

    Attributes:
        feature: a feature, a boolean property, or ``"subgroup:<operation>"``; ``""`` if none is needed.
        versions: core versions that have it.
        extensions: extensions that have it. One of these or of ``versions`` is enough; both may be empty.
    """

    feature: str
    versions: tuple[tuple[int, int], ...]
    extensions: tuple[str, ...]

    def __str__(self) -> str:
        origin = " or ".join([*(f"Vulkan {major}.{minor}" for major, minor in self.versions), *self.extensions])
        if not self.feature:
            return origin
        if self.feature.startswith(_SUBGROUP):
            name = f"the subgroup operation {self.feature.removeprefix(_SUBGROUP)}"
        else:
            name = f"the feature {self.feature}"
        return f"{name} (of {origin})" if origin else name

    def satisfied(
        self,
        api_version: tuple[int, int],
        features: frozenset[str],
        extensions: frozenset[str],
        subgroup_operations: frozenset[str],
    ) -> bool:
        """Whether a device allows this; arguments as in `missing_requirements`."""
        core = any(api_version >= version for version in self.versions)
        available = core or any(extension in extensions for extension in self.extensions)
        if not self.feature:
            return available
        if self.feature.startswith(_SUBGROUP):
            return available and self.feature.removeprefix(_SUBGROUP) in subgroup_operations
        # A name shared by extensions (cooperativeMatrix) needs its own one. A core feature's name is enough: drivers
        # may offer it through an extension that was promoted under another name.
        return self.feature in features and (available or bool(self.versions) or not self.extensions)


@dataclasses.dataclass(frozen=True, slots=True)
class CapabilityRequirement:
    """What a SPIR-V capability needs.

    Attributes:
        number: SPIR-V's number.
        name: SPIR-V's name.
        alternatives: ways to have it; none if Vulkan never allows it.
    """

    number: int
    name: str
    alternatives: tuple[Alternative, ...]


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


def _alternative(text: str) -> Alternative:
    feature, _, origin = text.partition("@")
    if feature[0].isdigit() or feature.startswith("VK_"):
        feature, origin = "", text
    origins = origin.split(",") if origin else []
    return Alternative(
        feature,
        tuple(_version(item) for item in origins if item[0].isdigit()),
        tuple(item for item in origins if not item[0].isdigit()),
    )


def _alternatives(text: str) -> tuple[Alternative, ...]:
    return () if text == "-" else tuple(_alternative(item.strip()) for item in text.split("|"))


@functools.cache
def capability_requirements() -> Mapping[int, CapabilityRequirement]:
    """Every known capability by number."""
    found: dict[int, CapabilityRequirement] = {}
    for line in _CAPABILITIES.replace("\n ", " ").strip().splitlines():
        number, name, needs = line.split(maxsplit=2)
        if int(number) in found:
            raise InternalError(f"capability {number} is in the table twice")
        found[int(number)] = CapabilityRequirement(int(number), name, _alternatives(needs))
    return MappingProxyType(found)


@functools.cache
def extension_requirements() -> Mapping[str, tuple[Alternative, ...]]:
    """Every known SPIR-V extension by name, with the ways to have it."""
    lines = (line.split(maxsplit=1) for line in _EXTENSIONS.strip().splitlines())
    return MappingProxyType({name: _alternatives(needs) for name, needs in lines})


@functools.cache
def _by_name() -> Mapping[str, CapabilityRequirement]:
    return {requirement.name: requirement for requirement in capability_requirements().values()}


def capability_name(number: int) -> str:
    """SPIR-V's name for a capability, ``"Capability(<number>)"`` if it is not known here."""
    requirement = capability_requirements().get(number)
    return f"Capability({number})" if requirement is None else requirement.name


def missing_requirements(
    module: ShaderModuleReflection,
    *,
    api_version: tuple[int, int],
    features: frozenset[str],
    extensions: frozenset[str],
    subgroup_operations: frozenset[str],
) -> list[str]:
    """What a device lacks for a module, one sentence each; empty if it has all.

    Args:
        module: the module's reflection.
        api_version: the Vulkan version in use, ``(major, minor)``: the lower of instance's and device's.
        features: enabled features by their names in the Vulkan structures, and the boolean properties of
            ``VkPhysicalDeviceFloatControlsProperties`` that are true (``"shaderDenormPreserveFloat32"``).
        extensions: enabled device extensions.
        subgroup_operations: supported subgroup operations: basic, vote, arithmetic, ballot, shuffle,
            shuffle_relative, clustered, quad, partitioned; with or without ``"subgroup:"`` before.
    """
    operations = frozenset(operation.removeprefix(_SUBGROUP) for operation in subgroup_operations)
    device = (api_version, features, extensions, operations)
    missing = _missing_version(module.version, api_version, extensions)
    for name in dict.fromkeys(module.capabilities):
        requirement = _by_name().get(name)
        if requirement is None:
            missing.append(
                f"SPIR-V capability {name} is not known to this version, so it cannot be told what the device "
                "needs for it; build the shader without it."
            )
        elif not requirement.alternatives:
            missing.append(f"SPIR-V capability {name} is not allowed in Vulkan; build the shader for Vulkan.")
        elif not any(alternative.satisfied(*device) for alternative in requirement.alternatives):
            missing.append(f"SPIR-V capability {name} needs {_either(requirement.alternatives)}, not available here.")
    for name in dict.fromkeys(module.extensions):
        alternatives = extension_requirements().get(name)
        if alternatives is None:
            missing.append(f"SPIR-V extension {name} is not allowed in Vulkan; build the shader without it.")
        elif not any(alternative.satisfied(*device) for alternative in alternatives):
            missing.append(f"SPIR-V extension {name} needs {_either(alternatives)}, not available here.")
    return missing


def _either(alternatives: tuple[Alternative, ...]) -> str:
    return ", or ".join(str(alternative) for alternative in alternatives)


def _missing_version(version: tuple[int, int], api_version: tuple[int, int], extensions: frozenset[str]) -> list[str]:
    name = ".".join(map(str, version))
    if version not in _VERSIONS:
        return [f"SPIR-V {name} is not allowed by any known Vulkan version; target SPIR-V 1.6 or older."]
    core, extension = _VERSIONS[version]
    if api_version >= core or extension in extensions:
        return []
    alternative = Alternative("", (core,), (extension,) if extension else ())
    return [f"SPIR-V {name} needs {alternative}, the device has Vulkan {'.'.join(map(str, api_version))}."]
