# Made by tests/support/public_stubs.py.
import builtins
from typing import Any

from numpy import False_ as False_
from numpy import True_ as True_
from numpy import base_repr as base_repr
from numpy import binary_repr as binary_repr
from numpy import complexfloating as complexfloating
from numpy import dtype as dtype
from numpy import errstate as errstate
from numpy import euler_gamma as euler_gamma
from numpy import floating as floating
from numpy import format_float_positional as format_float_positional
from numpy import format_float_scientific as format_float_scientific
from numpy import geterr as geterr
from numpy import inexact as inexact
from numpy import integer as integer
from numpy import issubdtype as issubdtype
from numpy import iterable as iterable
from numpy import number as number
from numpy import seterr as seterr
from numpy import signedinteger as signedinteger
from numpy import unsignedinteger as unsignedinteger

from gputensor import backends as backends
from gputensor import blas as blas
from gputensor import cublas as cublas
from gputensor import cuda as cuda
from gputensor import device as device
from gputensor import fft as fft
from gputensor import graphs as graphs
from gputensor import lib as lib
from gputensor import linalg as linalg
from gputensor import memory as memory
from gputensor import polynomial as polynomial
from gputensor import programs as programs
from gputensor import random as random
from gputensor import sharing as sharing
from gputensor import special as special
from gputensor import testing as testing
from gputensor._arrays.dtypes import bfloat16 as bfloat16
from gputensor._arrays.dtypes import bool_ as bool_
from gputensor._arrays.dtypes import complex64 as complex64
from gputensor._arrays.dtypes import complex128 as complex128
from gputensor._arrays.dtypes import finfo as finfo
from gputensor._arrays.dtypes import float8_e4m3 as float8_e4m3
from gputensor._arrays.dtypes import float8_e5m2 as float8_e5m2
from gputensor._arrays.dtypes import float16 as float16
from gputensor._arrays.dtypes import float32 as float32
from gputensor._arrays.dtypes import float64 as float64
from gputensor._arrays.dtypes import iinfo as iinfo
from gputensor._arrays.dtypes import int8 as int8
from gputensor._arrays.dtypes import int16 as int16
from gputensor._arrays.dtypes import int32 as int32
from gputensor._arrays.dtypes import int64 as int64
from gputensor._arrays.dtypes import isdtype as isdtype
from gputensor._arrays.dtypes import uint8 as uint8
from gputensor._arrays.dtypes import uint16 as uint16
from gputensor._arrays.dtypes import uint32 as uint32
from gputensor._arrays.dtypes import uint64 as uint64
from gputensor._arrays.promotion import can_cast as can_cast
from gputensor._arrays.promotion import result_type as result_type
from gputensor.backends import get_float32_matmul_precision as get_float32_matmul_precision
from gputensor.backends import set_float32_matmul_precision as set_float32_matmul_precision
from gputensor.cuda import get_default_memory_pool as get_default_memory_pool
from gputensor.cuda import get_default_pinned_memory_pool as get_default_pinned_memory_pool
from gputensor.device import can_device_access_peer as can_device_access_peer
from gputensor.device import current_device as current_device
from gputensor.device import device_count as device_count
from gputensor.device import get_device_capability as get_device_capability
from gputensor.device import get_device_name as get_device_name
from gputensor.device import get_device_properties as get_device_properties
from gputensor.device import is_available as is_available
from gputensor.device import is_bf16_supported as is_bf16_supported
from gputensor.errors import DeviceError as DeviceError
from gputensor.errors import DriverError as DriverError
from gputensor.errors import GpuTensorError as GpuTensorError
from gputensor.errors import ModelError as ModelError
from gputensor.errors import OutOfMemoryError as OutOfMemoryError
from gputensor.errors import ProgramError as ProgramError
from gputensor.errors import ProgramFileError as ProgramFileError
from gputensor.errors import ProgramRunError as ProgramRunError
from gputensor.errors import TraceError as TraceError
from gputensor.errors import UnorderedAccessError as UnorderedAccessError
from gputensor.fft.short_time import istft as istft
from gputensor.fft.short_time import stft as stft
from gputensor.importers.onnx_model import load_onnx as load_onnx
from gputensor.importers.torch_export import from_exported as from_exported
from gputensor.linalg.decompositions import cholesky as cholesky
from gputensor.linalg.decompositions import qr as qr
from gputensor.linalg.fits import poly as poly
from gputensor.linalg.fits import polyfit as polyfit
from gputensor.linalg.fits import roots as roots
from gputensor.linalg.poly1d import poly1d as poly1d
from gputensor.linalg.powers import matrix_exp as matrix_exp
from gputensor.linalg.powers import matrix_power as matrix_power
from gputensor.linalg.solutions import det as det
from gputensor.linalg.solutions import slogdet as slogdet
from gputensor.linalg.torch_names import chain_matmul as chain_matmul
from gputensor.linalg.torch_names import cholesky_inverse as cholesky_inverse
from gputensor.linalg.torch_names import inverse as inverse
from gputensor.linalg.torch_names import logdet as logdet
from gputensor.linalg.torch_names import lu_unpack as lu_unpack
from gputensor.linalg.torch_names import pinverse as pinverse
from gputensor.linalg.torch_names import svd as svd
from gputensor.linalg.triangles import cholesky_solve as cholesky_solve
from gputensor.nn import batch_norm as batch_norm
from gputensor.nn import group_norm as group_norm
from gputensor.nn import instance_norm as instance_norm
from gputensor.nn import layer_norm as layer_norm
from gputensor.nn import log_softmax as log_softmax
from gputensor.nn import logsumexp as logsumexp
from gputensor.nn import rms_norm as rms_norm
from gputensor.nn import scaled_dot_product_attention as scaled_dot_product_attention
from gputensor.nn import softmax as softmax
from gputensor.nn.activations import celu as celu
from gputensor.nn.activations import elu as elu
from gputensor.nn.activations import elu_ as elu_
from gputensor.nn.activations import hardshrink as hardshrink
from gputensor.nn.activations import hardsigmoid as hardsigmoid
from gputensor.nn.activations import hardswish as hardswish
from gputensor.nn.activations import hardtanh as hardtanh
from gputensor.nn.activations import hardtanh_ as hardtanh_
from gputensor.nn.activations import leaky_relu as leaky_relu
from gputensor.nn.activations import leaky_relu_ as leaky_relu_
from gputensor.nn.activations import logsigmoid as logsigmoid
from gputensor.nn.activations import mish as mish
from gputensor.nn.activations import prelu as prelu
from gputensor.nn.activations import relu6 as relu6
from gputensor.nn.activations import selu as selu
from gputensor.nn.activations import softplus as softplus
from gputensor.nn.activations import softshrink as softshrink
from gputensor.nn.activations import softsign as softsign
from gputensor.nn.activations import tanhshrink as tanhshrink
from gputensor.nn.activations import threshold as threshold
from gputensor.nn.activations import threshold_ as threshold_
from gputensor.nn.alignments import ctc_loss as ctc_loss
from gputensor.nn.bags import bilinear as bilinear
from gputensor.nn.bags import embedding_bag as embedding_bag
from gputensor.nn.convolution import conv1d as conv1d
from gputensor.nn.convolution import conv2d as conv2d
from gputensor.nn.convolution import conv3d as conv3d
from gputensor.nn.convolution import conv_transpose1d as conv_transpose1d
from gputensor.nn.convolution import conv_transpose2d as conv_transpose2d
from gputensor.nn.convolution import conv_transpose3d as conv_transpose3d
from gputensor.nn.distances import binary_cross_entropy as binary_cross_entropy
from gputensor.nn.distances import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from gputensor.nn.distances import huber_loss as huber_loss
from gputensor.nn.distances import kl_div as kl_div
from gputensor.nn.distances import l1_loss as l1_loss
from gputensor.nn.distances import local_response_norm as local_response_norm
from gputensor.nn.distances import mse_loss as mse_loss
from gputensor.nn.distances import smooth_l1_loss as smooth_l1_loss
from gputensor.nn.interpolation import channel_shuffle as channel_shuffle
from gputensor.nn.interpolation import interpolate as interpolate
from gputensor.nn.interpolation import pixel_shuffle as pixel_shuffle
from gputensor.nn.interpolation import pixel_unshuffle as pixel_unshuffle
from gputensor.nn.labels import multi_margin_loss as multi_margin_loss
from gputensor.nn.labels import multilabel_margin_loss as multilabel_margin_loss
from gputensor.nn.labels import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from gputensor.nn.labels import (
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from gputensor.nn.losses import cross_entropy as cross_entropy
from gputensor.nn.losses import nll_loss as nll_loss
from gputensor.nn.margins import cosine_embedding_loss as cosine_embedding_loss
from gputensor.nn.margins import gaussian_nll_loss as gaussian_nll_loss
from gputensor.nn.margins import hinge_embedding_loss as hinge_embedding_loss
from gputensor.nn.margins import margin_ranking_loss as margin_ranking_loss
from gputensor.nn.margins import pairwise_distance as pairwise_distance
from gputensor.nn.margins import poisson_nll_loss as poisson_nll_loss
from gputensor.nn.margins import soft_margin_loss as soft_margin_loss
from gputensor.nn.margins import triplet_margin_loss as triplet_margin_loss
from gputensor.nn.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from gputensor.nn.pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from gputensor.nn.pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from gputensor.nn.pooling import adaptive_max_pool1d as adaptive_max_pool1d
from gputensor.nn.pooling import adaptive_max_pool2d as adaptive_max_pool2d
from gputensor.nn.pooling import adaptive_max_pool3d as adaptive_max_pool3d
from gputensor.nn.pooling import avg_pool1d as avg_pool1d
from gputensor.nn.pooling import avg_pool2d as avg_pool2d
from gputensor.nn.pooling import avg_pool3d as avg_pool3d
from gputensor.nn.pooling import global_avg_pool as global_avg_pool
from gputensor.nn.pooling import global_max_pool as global_max_pool
from gputensor.nn.pooling import lp_pool1d as lp_pool1d
from gputensor.nn.pooling import lp_pool2d as lp_pool2d
from gputensor.nn.pooling import lp_pool3d as lp_pool3d
from gputensor.nn.pooling import max_pool1d as max_pool1d
from gputensor.nn.pooling import max_pool2d as max_pool2d
from gputensor.nn.pooling import max_pool3d as max_pool3d
from gputensor.nn.positions import embedding as embedding
from gputensor.nn.positions import rotary as rotary
from gputensor.nn.sampling import affine_grid as affine_grid
from gputensor.nn.sampling import grid_sample as grid_sample
from gputensor.nn.unpooling import fold as fold
from gputensor.nn.unpooling import max_unpool1d as max_unpool1d
from gputensor.nn.unpooling import max_unpool2d as max_unpool2d
from gputensor.nn.unpooling import max_unpool3d as max_unpool3d
from gputensor.programs import Dim as Dim
from gputensor.programs import compile as compile
from gputensor.programs import cond as cond
from gputensor.programs import fori_loop as fori_loop
from gputensor.programs import fuse as fuse
from gputensor.programs import jit as jit
from gputensor.programs import load_program as load_program
from gputensor.programs import scan as scan
from gputensor.programs import spec as spec
from gputensor.programs import while_loop as while_loop
from gputensor.random import Generator as Generator
from gputensor.random import bernoulli as bernoulli
from gputensor.random import initial_seed as initial_seed
from gputensor.random import manual_seed as manual_seed
from gputensor.random import multinomial as multinomial
from gputensor.random import poisson as poisson
from gputensor.random import rand as rand
from gputensor.random import randint as randint
from gputensor.random import randn as randn
from gputensor.random import randperm as randperm
from gputensor.random.dropout import dropout as dropout
from gputensor.random.dropout import dropout1d as dropout1d
from gputensor.random.dropout import dropout2d as dropout2d
from gputensor.random.dropout import dropout3d as dropout3d
from gputensor.random.dropout import gumbel_softmax as gumbel_softmax
from gputensor.random.dropout import rrelu as rrelu
from gputensor.random.in_place import rand_like as rand_like
from gputensor.random.in_place import randint_like as randint_like
from gputensor.random.in_place import randn_like as randn_like
from gputensor.streams import Device as Device
from gputensor.streams import Event as Event
from gputensor.streams import ExternalStream as ExternalStream
from gputensor.streams import Stream as Stream
from gputensor.streams import current_stream as current_stream
from gputensor.streams import default_stream as default_stream
from gputensor.streams import ordering as ordering
from gputensor.streams import set_stream as set_stream
from gputensor.streams import stream as stream
from gputensor.streams import synchronize as synchronize
from gputensor.streams.queue import set_device as set_device
from gputensor.tensor.array_file import load as load
from gputensor.tensor.array_file import save as save
from gputensor.tensor.array_file import savez as savez
from gputensor.tensor.array_file import savez_compressed as savez_compressed
from gputensor.tensor.blends import addcdiv as addcdiv
from gputensor.tensor.blends import addcmul as addcmul
from gputensor.tensor.blends import div as div
from gputensor.tensor.blends import frac as frac
from gputensor.tensor.blends import lerp as lerp
from gputensor.tensor.blends import logaddexp2 as logaddexp2
from gputensor.tensor.blends import logit as logit
from gputensor.tensor.blends import numel as numel
from gputensor.tensor.blends import xlogy as xlogy
from gputensor.tensor.core import Tensor as Tensor
from gputensor.tensor.functions import abs as abs
from gputensor.tensor.functions import acos as acos
from gputensor.tensor.functions import acosh as acosh
from gputensor.tensor.functions import add as add
from gputensor.tensor.functions import all as all
from gputensor.tensor.functions import amax as amax
from gputensor.tensor.functions import amin as amin
from gputensor.tensor.functions import any as any
from gputensor.tensor.functions import argmax as argmax
from gputensor.tensor.functions import argmin as argmin
from gputensor.tensor.functions import asin as asin
from gputensor.tensor.functions import asinh as asinh
from gputensor.tensor.functions import atan as atan
from gputensor.tensor.functions import atan2 as atan2
from gputensor.tensor.functions import atanh as atanh
from gputensor.tensor.functions import binary_exponent as binary_exponent
from gputensor.tensor.functions import binary_fraction as binary_fraction
from gputensor.tensor.functions import bitwise_and as bitwise_and
from gputensor.tensor.functions import bitwise_count as bitwise_count
from gputensor.tensor.functions import bitwise_invert as bitwise_invert
from gputensor.tensor.functions import bitwise_left_shift as bitwise_left_shift
from gputensor.tensor.functions import bitwise_or as bitwise_or
from gputensor.tensor.functions import bitwise_right_shift as bitwise_right_shift
from gputensor.tensor.functions import bitwise_xor as bitwise_xor
from gputensor.tensor.functions import cbrt as cbrt
from gputensor.tensor.functions import ceil as ceil
from gputensor.tensor.functions import clip as clip
from gputensor.tensor.functions import conj as conj
from gputensor.tensor.functions import cos as cos
from gputensor.tensor.functions import cosh as cosh
from gputensor.tensor.functions import count_nonzero as count_nonzero
from gputensor.tensor.functions import digamma as digamma
from gputensor.tensor.functions import divide as divide
from gputensor.tensor.functions import equal as equal
from gputensor.tensor.functions import erf as erf
from gputensor.tensor.functions import erfc as erfc
from gputensor.tensor.functions import erfinv as erfinv
from gputensor.tensor.functions import exp as exp
from gputensor.tensor.functions import expm1 as expm1
from gputensor.tensor.functions import floor as floor
from gputensor.tensor.functions import floor_divide as floor_divide
from gputensor.tensor.functions import gcd as gcd
from gputensor.tensor.functions import gelu as gelu
from gputensor.tensor.functions import greater as greater
from gputensor.tensor.functions import greater_equal as greater_equal
from gputensor.tensor.functions import i0 as i0
from gputensor.tensor.functions import igamma as igamma
from gputensor.tensor.functions import igammac as igammac
from gputensor.tensor.functions import imag as imag
from gputensor.tensor.functions import isfinite as isfinite
from gputensor.tensor.functions import isinf as isinf
from gputensor.tensor.functions import isnan as isnan
from gputensor.tensor.functions import lcm as lcm
from gputensor.tensor.functions import less as less
from gputensor.tensor.functions import less_equal as less_equal
from gputensor.tensor.functions import lgamma as lgamma
from gputensor.tensor.functions import log as log
from gputensor.tensor.functions import log1p as log1p
from gputensor.tensor.functions import log2 as log2
from gputensor.tensor.functions import log10 as log10
from gputensor.tensor.functions import logical_and as logical_and
from gputensor.tensor.functions import logical_not as logical_not
from gputensor.tensor.functions import logical_or as logical_or
from gputensor.tensor.functions import logical_xor as logical_xor
from gputensor.tensor.functions import max as max
from gputensor.tensor.functions import maximum as maximum
from gputensor.tensor.functions import mean as mean
from gputensor.tensor.functions import min as min
from gputensor.tensor.functions import minimum as minimum
from gputensor.tensor.functions import multiply as multiply
from gputensor.tensor.functions import negative as negative
from gputensor.tensor.functions import not_equal as not_equal
from gputensor.tensor.functions import poisson_quantile as poisson_quantile
from gputensor.tensor.functions import positive as positive
from gputensor.tensor.functions import pow as pow
from gputensor.tensor.functions import prod as prod
from gputensor.tensor.functions import real as real
from gputensor.tensor.functions import reciprocal as reciprocal
from gputensor.tensor.functions import relu as relu
from gputensor.tensor.functions import remainder as remainder
from gputensor.tensor.functions import rsqrt as rsqrt
from gputensor.tensor.functions import sigmoid as sigmoid
from gputensor.tensor.functions import sign as sign
from gputensor.tensor.functions import silu as silu
from gputensor.tensor.functions import sin as sin
from gputensor.tensor.functions import sinc as sinc
from gputensor.tensor.functions import sinh as sinh
from gputensor.tensor.functions import sqrt as sqrt
from gputensor.tensor.functions import square as square
from gputensor.tensor.functions import std as std
from gputensor.tensor.functions import subtract as subtract
from gputensor.tensor.functions import sum as sum
from gputensor.tensor.functions import tan as tan
from gputensor.tensor.functions import tanh as tanh
from gputensor.tensor.functions import trunc as trunc
from gputensor.tensor.functions import var as var
from gputensor.tensor.functions import where as where
from gputensor.tensor.grids import diag_indices as diag_indices
from gputensor.tensor.grids import indices as indices
from gputensor.tensor.grids import ix_ as ix_
from gputensor.tensor.grids import ravel_multi_index as ravel_multi_index
from gputensor.tensor.grids import unravel_index as unravel_index
from gputensor.tensor.grids import vander as vander
from gputensor.tensor.histograms import bincount as bincount
from gputensor.tensor.histograms import digitize as digitize
from gputensor.tensor.histograms import histogram as histogram
from gputensor.tensor.histograms import histogram2d as histogram2d
from gputensor.tensor.histograms import histogram_bin_edges as histogram_bin_edges
from gputensor.tensor.histograms import histogramdd as histogramdd
from gputensor.tensor.interop import asarray as asarray
from gputensor.tensor.interop import ascontiguous as ascontiguous
from gputensor.tensor.interop import astype as astype
from gputensor.tensor.interop import copy as copy
from gputensor.tensor.interop import from_dlpack as from_dlpack
from gputensor.tensor.interop.arrays import array as array
from gputensor.tensor.interop.arrays import tensor as tensor
from gputensor.tensor.interop.safetensors import load_safetensors as load_safetensors
from gputensor.tensor.interop.safetensors import map_safetensors as map_safetensors
from gputensor.tensor.interop.safetensors import save_safetensors as save_safetensors
from gputensor.tensor.manipulation import arange as arange
from gputensor.tensor.manipulation import broadcast_arrays as broadcast_arrays
from gputensor.tensor.manipulation import broadcast_to as broadcast_to
from gputensor.tensor.manipulation import checked_indices as checked_indices
from gputensor.tensor.manipulation import empty as empty
from gputensor.tensor.manipulation import empty_like as empty_like
from gputensor.tensor.manipulation import expand_dims as expand_dims
from gputensor.tensor.manipulation import eye as eye
from gputensor.tensor.manipulation import flip as flip
from gputensor.tensor.manipulation import full as full
from gputensor.tensor.manipulation import full_like as full_like
from gputensor.tensor.manipulation import linspace as linspace
from gputensor.tensor.manipulation import matrix_transpose as matrix_transpose
from gputensor.tensor.manipulation import moveaxis as moveaxis
from gputensor.tensor.manipulation import nonzero as nonzero
from gputensor.tensor.manipulation import ones as ones
from gputensor.tensor.manipulation import ones_like as ones_like
from gputensor.tensor.manipulation import permute_dims as permute_dims
from gputensor.tensor.manipulation import reshape as reshape
from gputensor.tensor.manipulation import squeeze as squeeze
from gputensor.tensor.manipulation import take as take
from gputensor.tensor.manipulation import tril as tril
from gputensor.tensor.manipulation import triu as triu
from gputensor.tensor.manipulation import zeros as zeros
from gputensor.tensor.manipulation import zeros_like as zeros_like
from gputensor.tensor.manipulation.arithmetic import angle as angle
from gputensor.tensor.manipulation.arithmetic import deg2rad as deg2rad
from gputensor.tensor.manipulation.arithmetic import divmod as divmod
from gputensor.tensor.manipulation.arithmetic import exp2 as exp2
from gputensor.tensor.manipulation.arithmetic import fabs as fabs
from gputensor.tensor.manipulation.arithmetic import float_power as float_power
from gputensor.tensor.manipulation.arithmetic import fmax as fmax
from gputensor.tensor.manipulation.arithmetic import fmin as fmin
from gputensor.tensor.manipulation.arithmetic import fmod as fmod
from gputensor.tensor.manipulation.arithmetic import heaviside as heaviside
from gputensor.tensor.manipulation.arithmetic import iscomplex as iscomplex
from gputensor.tensor.manipulation.arithmetic import isneginf as isneginf
from gputensor.tensor.manipulation.arithmetic import isposinf as isposinf
from gputensor.tensor.manipulation.arithmetic import isreal as isreal
from gputensor.tensor.manipulation.arithmetic import ldexp as ldexp
from gputensor.tensor.manipulation.arithmetic import modf as modf
from gputensor.tensor.manipulation.arithmetic import nan_to_num as nan_to_num
from gputensor.tensor.manipulation.arithmetic import nextafter as nextafter
from gputensor.tensor.manipulation.arithmetic import rad2deg as rad2deg
from gputensor.tensor.manipulation.arithmetic import round as round
from gputensor.tensor.manipulation.axes import atleast_1d as atleast_1d
from gputensor.tensor.manipulation.axes import atleast_2d as atleast_2d
from gputensor.tensor.manipulation.axes import atleast_3d as atleast_3d
from gputensor.tensor.manipulation.axes import broadcast_shapes as broadcast_shapes
from gputensor.tensor.manipulation.axes import fliplr as fliplr
from gputensor.tensor.manipulation.axes import flipud as flipud
from gputensor.tensor.manipulation.axes import ravel as ravel
from gputensor.tensor.manipulation.closeness import allclose as allclose
from gputensor.tensor.manipulation.closeness import array_equal as array_equal
from gputensor.tensor.manipulation.closeness import array_equiv as array_equiv
from gputensor.tensor.manipulation.closeness import isclose as isclose
from gputensor.tensor.manipulation.composed import copysign as copysign
from gputensor.tensor.manipulation.composed import hypot as hypot
from gputensor.tensor.manipulation.composed import logaddexp as logaddexp
from gputensor.tensor.manipulation.composed import signbit as signbit
from gputensor.tensor.manipulation.diagonals import diagflat as diagflat
from gputensor.tensor.manipulation.diagonals import fill_diagonal as fill_diagonal
from gputensor.tensor.manipulation.diagonals import tri as tri
from gputensor.tensor.manipulation.differences import ediff1d as ediff1d
from gputensor.tensor.manipulation.joining import append as append
from gputensor.tensor.manipulation.joining import column_stack as column_stack
from gputensor.tensor.manipulation.joining import dstack as dstack
from gputensor.tensor.manipulation.joining import hstack as hstack
from gputensor.tensor.manipulation.joining import meshgrid as meshgrid
from gputensor.tensor.manipulation.joining import tile as tile
from gputensor.tensor.manipulation.joining import vstack as vstack
from gputensor.tensor.manipulation.picking import argwhere as argwhere
from gputensor.tensor.manipulation.picking import compress as compress
from gputensor.tensor.manipulation.picking import delete as delete
from gputensor.tensor.manipulation.picking import extract as extract
from gputensor.tensor.manipulation.picking import flatnonzero as flatnonzero
from gputensor.tensor.manipulation.picking import insert as insert
from gputensor.tensor.manipulation.picking import masked_fill as masked_fill
from gputensor.tensor.manipulation.picking import masked_select as masked_select
from gputensor.tensor.manipulation.picking import one_hot as one_hot
from gputensor.tensor.manipulation.picking import put_along_axis as put_along_axis
from gputensor.tensor.manipulation.splitting import dsplit as dsplit
from gputensor.tensor.manipulation.splitting import hsplit as hsplit
from gputensor.tensor.manipulation.splitting import vsplit as vsplit
from gputensor.tensor.numerics.attributes import adjoint as adjoint
from gputensor.tensor.numerics.attributes import conj_physical as conj_physical
from gputensor.tensor.numerics.attributes import enable_grad as enable_grad
from gputensor.tensor.numerics.attributes import get_default_dtype as get_default_dtype
from gputensor.tensor.numerics.attributes import inference_mode as inference_mode
from gputensor.tensor.numerics.attributes import is_conj as is_conj
from gputensor.tensor.numerics.attributes import is_grad_enabled as is_grad_enabled
from gputensor.tensor.numerics.attributes import is_inference as is_inference
from gputensor.tensor.numerics.attributes import (
    is_inference_mode_enabled as is_inference_mode_enabled,
)
from gputensor.tensor.numerics.attributes import no_grad as no_grad
from gputensor.tensor.numerics.attributes import resolve_conj as resolve_conj
from gputensor.tensor.numerics.attributes import resolve_neg as resolve_neg
from gputensor.tensor.numerics.attributes import set_grad_enabled as set_grad_enabled
from gputensor.tensor.numerics.digits import frexp as frexp
from gputensor.tensor.numerics.digits import packbits as packbits
from gputensor.tensor.numerics.digits import real_if_close as real_if_close
from gputensor.tensor.numerics.digits import spacing as spacing
from gputensor.tensor.numerics.digits import unpackbits as unpackbits
from gputensor.tensor.numerics.distances import addbmm as addbmm
from gputensor.tensor.numerics.distances import addmv as addmv
from gputensor.tensor.numerics.distances import addr as addr
from gputensor.tensor.numerics.distances import cdist as cdist
from gputensor.tensor.numerics.distances import dist as dist
from gputensor.tensor.numerics.distances import ger as ger
from gputensor.tensor.numerics.distances import pdist as pdist
from gputensor.tensor.numerics.element_calls import broadcast as broadcast
from gputensor.tensor.numerics.element_calls import clear_memo as clear_memo
from gputensor.tensor.numerics.element_calls import einsum_path as einsum_path
from gputensor.tensor.numerics.element_calls import memoize as memoize
from gputensor.tensor.numerics.element_calls import ndenumerate as ndenumerate
from gputensor.tensor.numerics.element_calls import require as require
from gputensor.tensor.numerics.element_calls import vectorize as vectorize
from gputensor.tensor.numerics.facts import array2string as array2string
from gputensor.tensor.numerics.facts import asnumpy as asnumpy
from gputensor.tensor.numerics.facts import common_type as common_type
from gputensor.tensor.numerics.facts import get_array_module as get_array_module
from gputensor.tensor.numerics.facts import is_complex as is_complex
from gputensor.tensor.numerics.facts import is_floating_point as is_floating_point
from gputensor.tensor.numerics.facts import is_nonzero as is_nonzero
from gputensor.tensor.numerics.facts import is_tensor as is_tensor
from gputensor.tensor.numerics.facts import iscomplexobj as iscomplexobj
from gputensor.tensor.numerics.facts import isfortran as isfortran
from gputensor.tensor.numerics.facts import isrealobj as isrealobj
from gputensor.tensor.numerics.facts import isscalar as isscalar
from gputensor.tensor.numerics.facts import item as item
from gputensor.tensor.numerics.facts import may_share_memory as may_share_memory
from gputensor.tensor.numerics.facts import min_scalar_type as min_scalar_type
from gputensor.tensor.numerics.facts import ndim as ndim
from gputensor.tensor.numerics.facts import shape as shape
from gputensor.tensor.numerics.facts import size as size
from gputensor.tensor.numerics.gammas import mvlgamma as mvlgamma
from gputensor.tensor.numerics.gammas import polygamma as polygamma
from gputensor.tensor.numerics.host_loops import nditer as nditer
from gputensor.tensor.numerics.index_makers import c_ as c_
from gputensor.tensor.numerics.index_makers import index_exp as index_exp
from gputensor.tensor.numerics.index_makers import mgrid as mgrid
from gputensor.tensor.numerics.index_makers import ndindex as ndindex
from gputensor.tensor.numerics.index_makers import ogrid as ogrid
from gputensor.tensor.numerics.index_makers import r_ as r_
from gputensor.tensor.numerics.index_makers import s_ as s_
from gputensor.tensor.numerics.making import asarray_chkfinite as asarray_chkfinite
from gputensor.tensor.numerics.making import ascontiguousarray as ascontiguousarray
from gputensor.tensor.numerics.making import asfortranarray as asfortranarray
from gputensor.tensor.numerics.making import block_diag as block_diag
from gputensor.tensor.numerics.making import cartesian_prod as cartesian_prod
from gputensor.tensor.numerics.making import combinations as combinations
from gputensor.tensor.numerics.making import complex as complex
from gputensor.tensor.numerics.making import from_numpy as from_numpy
from gputensor.tensor.numerics.making import frombuffer as frombuffer
from gputensor.tensor.numerics.making import fromfunction as fromfunction
from gputensor.tensor.numerics.making import fromiter as fromiter
from gputensor.tensor.numerics.making import polar as polar
from gputensor.tensor.numerics.making import scalar_tensor as scalar_tensor
from gputensor.tensor.numerics.padding import pad as pad
from gputensor.tensor.numerics.polynomials import polyadd as polyadd
from gputensor.tensor.numerics.polynomials import polyder as polyder
from gputensor.tensor.numerics.polynomials import polydiv as polydiv
from gputensor.tensor.numerics.polynomials import polyint as polyint
from gputensor.tensor.numerics.polynomials import polymul as polymul
from gputensor.tensor.numerics.polynomials import polysub as polysub
from gputensor.tensor.numerics.progressions import geomspace as geomspace
from gputensor.tensor.numerics.progressions import logspace as logspace
from gputensor.tensor.numerics.running import unwrap as unwrap
from gputensor.tensor.numerics.tapers import bartlett as bartlett
from gputensor.tensor.numerics.tapers import bartlett_window as bartlett_window
from gputensor.tensor.numerics.tapers import blackman as blackman
from gputensor.tensor.numerics.tapers import blackman_window as blackman_window
from gputensor.tensor.numerics.tapers import hamming as hamming
from gputensor.tensor.numerics.tapers import hamming_window as hamming_window
from gputensor.tensor.numerics.tapers import hann_window as hann_window
from gputensor.tensor.numerics.tapers import hanning as hanning
from gputensor.tensor.numerics.tapers import kaiser as kaiser
from gputensor.tensor.numerics.tapers import kaiser_window as kaiser_window
from gputensor.tensor.numerics.text_files import fromfile as fromfile
from gputensor.tensor.numerics.text_files import fromstring as fromstring
from gputensor.tensor.numerics.text_files import genfromtxt as genfromtxt
from gputensor.tensor.numerics.text_files import loadtxt as loadtxt
from gputensor.tensor.numerics.text_files import savetxt as savetxt
from gputensor.tensor.numerics.torch_methods import clamp_max as clamp_max
from gputensor.tensor.numerics.torch_methods import clamp_min as clamp_min
from gputensor.tensor.numerics.torch_methods import detach as detach
from gputensor.tensor.numerics.torch_methods import index_put as index_put
from gputensor.tensor.numerics.torch_methods import index_put_ as index_put_
from gputensor.tensor.numerics.torch_methods import is_same_size as is_same_size
from gputensor.tensor.numerics.torch_methods import is_signed as is_signed
from gputensor.tensor.numerics.torch_methods import relu_ as relu_
from gputensor.tensor.numerics.torch_methods import rsub as rsub
from gputensor.tensor.numerics.torch_results import aminmax as aminmax
from gputensor.tensor.numerics.windows import as_strided as as_strided
from gputensor.tensor.numerics.windows import resize as resize
from gputensor.tensor.numerics.windows import rollaxis as rollaxis
from gputensor.tensor.numerics.windows import sliding_window_view as sliding_window_view
from gputensor.tensor.numerics.windows import t as t
from gputensor.tensor.numerics.windows import trim_zeros as trim_zeros
from gputensor.tensor.numerics.windows import view_as_complex as view_as_complex
from gputensor.tensor.numerics.windows import view_as_real as view_as_real
from gputensor.tensor.numerics.writing import apply_over_axes as apply_over_axes
from gputensor.tensor.numerics.writing import diag_indices_from as diag_indices_from
from gputensor.tensor.numerics.writing import mask_indices as mask_indices
from gputensor.tensor.numerics.writing import masked_scatter as masked_scatter
from gputensor.tensor.numerics.writing import piecewise as piecewise
from gputensor.tensor.numerics.writing import sort_complex as sort_complex
from gputensor.tensor.numerics.writing import tril_indices_from as tril_indices_from
from gputensor.tensor.numerics.writing import triu_indices_from as triu_indices_from
from gputensor.tensor.order_statistics import bucketize as bucketize
from gputensor.tensor.order_statistics import histc as histc
from gputensor.tensor.order_statistics import msort as msort
from gputensor.tensor.order_statistics import top_k as top_k
from gputensor.tensor.printing import array_repr as array_repr
from gputensor.tensor.printing import array_str as array_str
from gputensor.tensor.printing import get_printoptions as get_printoptions
from gputensor.tensor.printing import printoptions as printoptions
from gputensor.tensor.printing import set_printoptions as set_printoptions
from gputensor.tensor.products import addmm as addmm
from gputensor.tensor.products import baddbmm as baddbmm
from gputensor.tensor.products import bmm as bmm
from gputensor.tensor.products import grouped_matmul as grouped_matmul
from gputensor.tensor.products import linear as linear
from gputensor.tensor.products import matmul as matmul
from gputensor.tensor.products import mm as mm
from gputensor.tensor.products import mv as mv
from gputensor.tensor.products import quantized_linear as quantized_linear
from gputensor.tensor.products import scaled_matmul as scaled_matmul
from gputensor.tensor.products import vecdot as vecdot
from gputensor.tensor.products.einsum import einsum as einsum
from gputensor.tensor.products.outer import dot as dot
from gputensor.tensor.products.outer import inner as inner
from gputensor.tensor.products.outer import kron as kron
from gputensor.tensor.products.outer import matvec as matvec
from gputensor.tensor.products.outer import outer as outer
from gputensor.tensor.products.outer import vdot as vdot
from gputensor.tensor.products.outer import vecmat as vecmat
from gputensor.tensor.products.quantization import pack_int4 as pack_int4
from gputensor.tensor.products.quantization import quantize_int4 as quantize_int4
from gputensor.tensor.products.quantization import quantize_int8 as quantize_int8
from gputensor.tensor.products.quantization import unpack_int4 as unpack_int4
from gputensor.tensor.quantiles import nanpercentile as nanpercentile
from gputensor.tensor.quantiles import percentile as percentile
from gputensor.tensor.scans import cumulative_prod as cumulative_prod
from gputensor.tensor.scans import cumulative_sum as cumulative_sum
from gputensor.tensor.series import convolve as convolve
from gputensor.tensor.series import correlate as correlate
from gputensor.tensor.series import interp as interp
from gputensor.tensor.series import nancumprod as nancumprod
from gputensor.tensor.series import nancumsum as nancumsum
from gputensor.tensor.series import polyval as polyval
from gputensor.tensor.sets import argpartition as argpartition
from gputensor.tensor.sets import intersect1d as intersect1d
from gputensor.tensor.sets import lexsort as lexsort
from gputensor.tensor.sets import partition as partition
from gputensor.tensor.sets import setdiff1d as setdiff1d
from gputensor.tensor.sets import setxor1d as setxor1d
from gputensor.tensor.sets import union1d as union1d
from gputensor.tensor.sorting import isin as isin
from gputensor.tensor.sorting import searchsorted as searchsorted
from gputensor.tensor.sorting import unique_all as unique_all
from gputensor.tensor.sorting import unique_counts as unique_counts
from gputensor.tensor.sorting import unique_inverse as unique_inverse
from gputensor.tensor.sorting import unique_values as unique_values
from gputensor.tensor.statistics import average as average
from gputensor.tensor.statistics import corrcoef as corrcoef
from gputensor.tensor.statistics import nanargmax as nanargmax
from gputensor.tensor.statistics import nanargmin as nanargmin
from gputensor.tensor.statistics import nanmax as nanmax
from gputensor.tensor.statistics import nanmin as nanmin
from gputensor.tensor.statistics import nanprod as nanprod
from gputensor.tensor.statistics import nanstd as nanstd
from gputensor.tensor.statistics import nanvar as nanvar
from gputensor.tensor.statistics import ptp as ptp
from gputensor.tensor.user_kernels import ElementwiseKernel as ElementwiseKernel
from gputensor.tensor.user_kernels import RawKernel as RawKernel
from gputensor.tensor.user_kernels import RawModule as RawModule
from gputensor.tensor.user_kernels import ReductionKernel as ReductionKernel
from gputensor.tensor.writing import apply_along_axis as apply_along_axis
from gputensor.tensor.writing import block as block
from gputensor.tensor.writing import choose as choose
from gputensor.tensor.writing import copyto as copyto
from gputensor.tensor.writing import place as place
from gputensor.tensor.writing import put as put
from gputensor.tensor.writing import putmask as putmask
from gputensor.traces import trace as trace

e: builtins.float
inf: builtins.float
nan: builtins.float
pi: builtins.float
newaxis: None
channels_last: builtins.str
channels_last_3d: builtins.str
contiguous_format: builtins.str
preserve_format: builtins.str
__array_api_version__: str
__version__: str

def __array_namespace_info__() -> object: ...
def argsort(
    x: Any,
    /,
    axis: Any = ...,
    kind: Any = ...,
    *,
    descending: Any = ...,
    stable: Any = ...,
    dim: Any = ...,
) -> Tensor: ...
def array_split(
    x: Any, /, indices_or_sections: Any, axis: Any = ..., *, dim: Any = ...
) -> list[Tensor]: ...
def chunk(x: Any, /, chunks: Any, axis: Any = ..., *, dim: Any = ...) -> list[Tensor]: ...
def concat(
    arrays: Any, /, axis: Any = ..., out: Any = ..., *, dtype: Any = ..., dim: Any = ...
) -> Tensor: ...
def cosine_similarity(
    x1: Any, x2: Any, axis: Any = ..., eps: Any = ..., *, dim: Any = ...
) -> Tensor: ...
def cov(
    x: Any,
    y: Any = ...,
    rowvar: Any = ...,
    bias: Any = ...,
    ddof: Any = ...,
    fweights: Any = ...,
    aweights: Any = ...,
    *,
    correction: Any = ...,
) -> Tensor: ...
def cross(x1: Any, x2: Any, /, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
def cummax(x: Any, /, axis: Any = ..., *, dim: Any = ...) -> Any: ...
def cummin(x: Any, /, axis: Any = ..., *, dim: Any = ...) -> Any: ...
def cumprod(
    x: Any, /, axis: Any = ..., dtype: Any = ..., out: Any = ..., *, dim: Any = ...
) -> Tensor: ...
def cumsum(
    x: Any, /, axis: Any = ..., dtype: Any = ..., out: Any = ..., *, dim: Any = ...
) -> Tensor: ...
def cumulative_trapezoid(
    y: Any, /, x: Any = ..., dx: Any = ..., axis: Any = ..., *, dim: Any = ...
) -> Tensor: ...
def diag(x: Any, /, k: Any = ..., *, diagonal: Any = ...) -> Tensor: ...
def diag_embed(
    x: Any,
    /,
    offset: Any = ...,
    axis1: Any = ...,
    axis2: Any = ...,
    *,
    dim1: Any = ...,
    dim2: Any = ...,
) -> Tensor: ...
def diagonal(
    x: Any,
    /,
    offset: Any = ...,
    axis1: Any = ...,
    axis2: Any = ...,
    *,
    dim1: Any = ...,
    dim2: Any = ...,
) -> Tensor: ...
def diagonal_scatter(
    x: Any,
    /,
    source: Any = ...,
    offset: Any = ...,
    axis1: Any = ...,
    axis2: Any = ...,
    *,
    dim1: Any = ...,
    dim2: Any = ...,
    src: Any = ...,
) -> Tensor: ...
def diff(
    x: Any,
    /,
    n: Any = ...,
    axis: Any = ...,
    prepend: Any = ...,
    append: Any = ...,
    *,
    dim: Any = ...,
) -> Tensor: ...
def flatten(
    x: Any,
    /,
    start_axis: Any = ...,
    end_axis: Any = ...,
    *,
    start_dim: Any = ...,
    end_dim: Any = ...,
) -> Tensor: ...
def gather(x: Any, /, axis: Any = ..., index: Any = ..., *, dim: Any = ...) -> Tensor: ...
def glu(x: Any, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
def gradient(
    x: Any, /, *spacing: Any, axis: Any = ..., edge_order: Any = ..., dim: Any = ...
) -> Any: ...
def index_add(
    x: Any,
    /,
    axis: Any = ...,
    index: Any = ...,
    source: Any = ...,
    *,
    alpha: Any = ...,
    dim: Any = ...,
) -> Tensor: ...
def index_copy(
    x: Any, /, axis: Any = ..., index: Any = ..., source: Any = ..., *, dim: Any = ...
) -> Tensor: ...
def index_fill(
    x: Any, /, axis: Any = ..., index: Any = ..., value: Any = ..., *, dim: Any = ...
) -> Tensor: ...
def index_reduce(
    x: Any,
    /,
    axis: Any = ...,
    index: Any = ...,
    source: Any = ...,
    reduce: Any = ...,
    *,
    include_self: Any = ...,
    dim: Any = ...,
) -> Tensor: ...
def index_select(x: Any, /, axis: Any = ..., index: Any = ..., *, dim: Any = ...) -> Tensor: ...
def kthvalue(
    x: Any, /, k: Any, axis: Any = ..., keepdims: Any = ..., *, dim: Any = ..., keepdim: Any = ...
) -> Any: ...
def logcumsumexp(x: Any, /, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
def median(
    x: Any,
    /,
    axis: Any = ...,
    out: Any = ...,
    overwrite_input: Any = ...,
    keepdims: Any = ...,
    *,
    dim: Any = ...,
    keepdim: Any = ...,
) -> Any: ...
def mode(
    x: Any, /, axis: Any = ..., keepdims: Any = ..., *, dim: Any = ..., keepdim: Any = ...
) -> Any: ...
def nanmean(
    x: Any,
    /,
    axis: Any = ...,
    dtype: Any = ...,
    out: Any = ...,
    keepdims: Any = ...,
    *,
    where: Any = ...,
    dim: Any = ...,
    keepdim: Any = ...,
) -> Tensor: ...
def nanmedian(
    x: Any,
    /,
    axis: Any = ...,
    out: Any = ...,
    overwrite_input: Any = ...,
    keepdims: Any = ...,
    *,
    dim: Any = ...,
    keepdim: Any = ...,
) -> Any: ...
def nanquantile(
    x: Any,
    /,
    q: Any,
    axis: Any = ...,
    out: Any = ...,
    overwrite_input: Any = ...,
    method: Any = ...,
    keepdims: Any = ...,
    *,
    weights: Any = ...,
    dim: Any = ...,
    keepdim: Any = ...,
    interpolation: Any = ...,
) -> Tensor: ...
def nansum(
    x: Any,
    /,
    axis: Any = ...,
    dtype: Any = ...,
    out: Any = ...,
    keepdims: Any = ...,
    initial: Any = ...,
    where: Any = ...,
    *,
    dim: Any = ...,
    keepdim: Any = ...,
) -> Tensor: ...
def narrow(
    x: Any, /, axis: Any = ..., start: Any = ..., length: Any = ..., *, dim: Any = ...
) -> Tensor: ...
def narrow_copy(
    x: Any, axis: Any = ..., start: Any = ..., length: Any = ..., *, dim: Any = ...
) -> Tensor: ...
def norm(
    x: Any,
    /,
    ord: Any = ...,
    axis: Any = ...,
    keepdims: Any = ...,
    *,
    p: Any = ...,
    dim: Any = ...,
    keepdim: Any = ...,
) -> Tensor: ...
def normal(
    loc: Any = ...,
    scale: Any = ...,
    size: Any = ...,
    *,
    dtype: Any = ...,
    device: Any = ...,
    generator: Any = ...,
    mean: Any = ...,
    std: Any = ...,
) -> Tensor: ...
def normalize(
    x: Any, p: Any = ..., axis: Any = ..., eps: Any = ..., *, dim: Any = ...
) -> Tensor: ...
def permute(x: Any, /, *axes: Any, dims: Any = ...) -> Tensor: ...
def quantile(
    x: Any,
    /,
    q: Any,
    axis: Any = ...,
    out: Any = ...,
    overwrite_input: Any = ...,
    method: Any = ...,
    keepdims: Any = ...,
    *,
    weights: Any = ...,
    dim: Any = ...,
    keepdim: Any = ...,
    interpolation: Any = ...,
) -> Tensor: ...
def renorm(x: Any, /, p: Any, axis: Any = ..., maxnorm: Any = ..., *, dim: Any = ...) -> Tensor: ...
def repeat(x: Any, /, repeats: Any, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
def roll(
    x: Any, /, shift: Any = ..., axis: Any = ..., *, shifts: Any = ..., dims: Any = ...
) -> Tensor: ...
def rot90(x: Any, /, k: Any = ..., axes: Any = ..., *, dims: Any = ...) -> Tensor: ...
def scatter(
    x: Any,
    /,
    axis: Any = ...,
    index: Any = ...,
    source: Any = ...,
    *,
    dim: Any = ...,
    src: Any = ...,
    value: Any = ...,
) -> Tensor: ...
def scatter_add(
    x: Any,
    /,
    axis: Any = ...,
    index: Any = ...,
    source: Any = ...,
    *,
    dim: Any = ...,
    src: Any = ...,
) -> Tensor: ...
def scatter_reduce(
    x: Any,
    /,
    axis: Any = ...,
    index: Any = ...,
    source: Any = ...,
    reduce: Any = ...,
    *,
    include_self: Any = ...,
    dim: Any = ...,
    src: Any = ...,
) -> Tensor: ...
def select(
    conditions: Any, choices: Any, /, default: Any = ..., *, dim: Any = ..., index: Any = ...
) -> Tensor: ...
def select_scatter(
    x: Any,
    /,
    source: Any = ...,
    axis: Any = ...,
    index: Any = ...,
    *,
    dim: Any = ...,
    src: Any = ...,
) -> Tensor: ...
def slice_scatter(
    x: Any,
    /,
    source: Any = ...,
    axis: Any = ...,
    start: Any = ...,
    end: Any = ...,
    step: Any = ...,
    *,
    dim: Any = ...,
    src: Any = ...,
) -> Tensor: ...
def softmin(x: Any, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
def sort(
    x: Any,
    /,
    axis: Any = ...,
    kind: Any = ...,
    *,
    descending: Any = ...,
    stable: Any = ...,
    dim: Any = ...,
) -> Any: ...
def split(
    x: Any,
    indices_or_sections: Any,
    /,
    axis: Any = ...,
    *,
    dim: Any = ...,
    split_size_or_sections: Any = ...,
    split_size: Any = ...,
) -> list[Tensor]: ...
def split_with_sizes(x: Any, split_sizes: Any, /, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
def stack(
    arrays: Any, /, axis: Any = ..., out: Any = ..., *, dtype: Any = ..., dim: Any = ...
) -> Tensor: ...
def std_mean(
    x: Any,
    /,
    axis: Any = ...,
    *,
    correction: Any = ...,
    keepdims: Any = ...,
    unbiased: Any = ...,
    dim: Any = ...,
    keepdim: Any = ...,
) -> tuple[Tensor, Tensor]: ...
def swapaxes(
    x: Any,
    /,
    axis1: Any = ...,
    axis2: Any = ...,
    *,
    dim0: Any = ...,
    dim1: Any = ...,
    axis0: Any = ...,
) -> Tensor: ...
def take_along_axis(x: Any, /, indices: Any, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
def tensordot(
    x1: Any, x2: Any, /, axes: Any = ..., *, precision: Any = ..., dims: Any = ...
) -> Tensor: ...
def topk(
    x: Any, /, k: Any, axis: Any = ..., largest: Any = ..., sorted: Any = ..., *, dim: Any = ...
) -> Any: ...
def transpose(x: Any, /, axes: Any = ..., *, dim0: Any = ..., dim1: Any = ...) -> Tensor: ...
def trapezoid(
    y: Any, /, x: Any = ..., dx: Any = ..., axis: Any = ..., *, dim: Any = ...
) -> Tensor: ...
def tril_indices(
    n: Any = ...,
    k: Any = ...,
    m: Any = ...,
    *,
    device: Any = ...,
    row: Any = ...,
    col: Any = ...,
    offset: Any = ...,
) -> Tensor: ...
def triu_indices(
    n: Any = ...,
    k: Any = ...,
    m: Any = ...,
    *,
    device: Any = ...,
    row: Any = ...,
    col: Any = ...,
    offset: Any = ...,
) -> Tensor: ...
def unflatten(x: Any, /, axis: Any = ..., sizes: Any = ..., *, dim: Any = ...) -> Tensor: ...
def unfold(
    x: Any,
    /,
    axis: Any = ...,
    size: Any = ...,
    step: Any = ...,
    *,
    kernel_size: Any = ...,
    dilation: Any = ...,
    padding: Any = ...,
    stride: Any = ...,
    dimension: Any = ...,
) -> Tensor: ...
def unique(
    x: Any,
    /,
    return_index: Any = ...,
    return_inverse: Any = ...,
    return_counts: Any = ...,
    axis: Any = ...,
    *,
    equal_nan: Any = ...,
    dim: Any = ...,
) -> Any: ...
def unique_consecutive(
    x: Any,
    /,
    return_inverse: Any = ...,
    return_counts: Any = ...,
    axis: Any = ...,
    *,
    dim: Any = ...,
) -> Tensor: ...
def unsqueeze(x: Any, /, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
def unstack(x: Any, /, axis: Any = ..., *, dim: Any = ...) -> tuple[Tensor, ...]: ...
def var_mean(
    x: Any,
    /,
    axis: Any = ...,
    *,
    correction: Any = ...,
    keepdims: Any = ...,
    unbiased: Any = ...,
    dim: Any = ...,
    keepdim: Any = ...,
) -> tuple[Tensor, Tensor]: ...

absolute = abs
arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctan2 = atan2
arctanh = atanh
around = round
as_tensor = asarray
asanyarray = asarray
bitwise_not = bitwise_invert
bool = bool_
broadcast_tensors = broadcast_arrays
cat = concat
cdouble = complex128
cfloat = complex64
char = int8
clamp = clip
clone = copy
concatenate = concat
conjugate = conj
csingle = complex64
degrees = rad2deg
double = float64
eq = equal
fix = trunc
float = float32
float8_e4m3fn = float8_e4m3
fromDlpack = from_dlpack
ge = greater_equal
gt = greater
half = float16
identity = eye
int = int32
int_ = int64
intc = int32
intp = int64
invert = bitwise_invert
le = less_equal
left_shift = bitwise_left_shift
long = int64
longlong = int64
lt = less
mod = remainder
movedim = moveaxis
mul = multiply
ndarray = Tensor
ne = not_equal
neg = negative
power = pow
promote_types = result_type
radians = deg2rad
repeat_interleave = repeat
right_shift = bitwise_right_shift
rint = round
row_stack = vstack
sgn = sign
shares_memory = may_share_memory
short = int16
single = float32
sub = subtract
swapdims = swapaxes
take_along_dim = take_along_axis
tensor_split = array_split
trapz = trapezoid
true_divide = divide
ubyte = uint8
uint = uint64
uintc = uint32
uintp = uint64
ulong = uint64
ulonglong = uint64
unbind = unstack
ushort = uint16
