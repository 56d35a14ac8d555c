"""Layers and losses against what PyTorch 2.13 computes, written down here: PyTorch itself is not needed.

A row has the function, the shapes of its tensors, its other arguments, the shape of the result, and projections: sums of the
result's and the gradients' elements times fixed cosines. Inputs are waves; the upstream gradient is a cosine too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et

# fmt: off
ROWS: list[tuple[Any, ...]] = [
    ('conv3d', [(2, 4, 4, 5, 3), (4, 2, 2, 3, 2), (4,)], [], {'stride': (2, 1, 1), 'padding': (1, 0, 1), 'groups': 2}, (2, 4, 3, 3, 4), 1.7927665233687842, [4.193794322915348, -17.027566894346016, 2.2282591254199673]),
    ('conv3d', [(1, 2, 3, 4, 5), (3, 2, 2, 2, 3), (3,)], [], {'dilation': (1, 2, 1), 'padding': 1}, (1, 3, 4, 4, 5), 36.07734159006114, [-5.260191251496215, -43.23078833891559, 0.6864838503547279]),
    ('conv_transpose3d', [(1, 4, 2, 3, 2), (4, 2, 3, 2, 2), (4,)], [], {'stride': (2, 3, 1), 'padding': (1, 0, 1), 'output_padding': (1, 2, 0), 'groups': 2}, (1, 4, 4, 10, 1), -13.641400221374903, [19.50104650769206, -1.8067174711739478, -0.29200700578509686]),
    ('conv_transpose1d', [(2, 4, 5), (4, 2, 3), (4,)], [], {'stride': 3, 'padding': 1, 'output_padding': 2, 'groups': 2, 'dilation': 2}, (2, 4, 17), -4.408548227323826, [-4.487166565881852, 0.12403287415019293, -0.9491563889526172]),
    ('max_pool1d', [(2, 3, 9)], [], {'kernel_size': 3, 'stride': 2, 'padding': 1}, (2, 3, 5), 3.265732321558769, [2.149068925921199]),
    ('max_pool1d', [(2, 3, 9)], [], {'kernel_size': 2, 'stride': 3, 'padding': 1, 'ceil_mode': True, 'dilation': 2}, (2, 3, 4), -0.5652235735924931, [1.122091125806131]),
    ('avg_pool1d', [(2, 3, 9)], [], {'kernel_size': 3, 'stride': 2, 'padding': 1, 'ceil_mode': True, 'count_include_pad': False}, (2, 3, 5), -0.4008998770942186, [-0.2943997565043733]),
    ('adaptive_avg_pool1d', [(2, 3, 9)], [], {'output_size': (2,)}, (2, 3, 2), 0.2612217764891809, [0.39237249850313033]),
    ('adaptive_max_pool1d', [(2, 3, 9)], [], {'output_size': (2,)}, (2, 3, 2), 0.2133461505104295, [3.9026784649511144]),
    ('max_pool2d', [(2, 3, 7, 8)], [], {'kernel_size': 3, 'stride': 2, 'padding': 1}, (2, 3, 4, 4), -1.6674537554160258, [4.157699377293868]),
    ('max_pool2d', [(2, 3, 7, 8)], [], {'kernel_size': 2, 'stride': 3, 'padding': 1, 'ceil_mode': True, 'dilation': 2}, (2, 3, 3, 3), 1.9895813307115322, [1.4874735326987434]),
    ('avg_pool2d', [(2, 3, 7, 8)], [], {'kernel_size': 3, 'stride': 2, 'padding': 1, 'ceil_mode': True, 'count_include_pad': False}, (2, 3, 4, 5), -1.3818881887833112, [0.32087182105203516]),
    ('adaptive_avg_pool2d', [(2, 3, 7, 8)], [], {'output_size': (2, 4)}, (2, 3, 2, 4), 1.2694972398383118, [0.2874293305981407]),
    ('adaptive_max_pool2d', [(2, 3, 7, 8)], [], {'output_size': (2, 4)}, (2, 3, 2, 4), -1.6197860020282684, [-0.243440888507803]),
    ('max_pool3d', [(2, 2, 5, 6, 7)], [], {'kernel_size': 3, 'stride': 2, 'padding': 1}, (2, 2, 3, 3, 4), -4.816815590897078, [-2.5529168742508643]),
    ('max_pool3d', [(2, 2, 5, 6, 7)], [], {'kernel_size': 2, 'stride': 3, 'padding': 1, 'ceil_mode': True, 'dilation': 2}, (2, 2, 2, 3, 3), -6.548355462959137, [0.3696289168861384]),
    ('avg_pool3d', [(2, 2, 5, 6, 7)], [], {'kernel_size': 3, 'stride': 2, 'padding': 1, 'ceil_mode': True, 'count_include_pad': False}, (2, 2, 3, 4, 4), -0.47503459382170476, [-0.8020950381825178]),
    ('adaptive_avg_pool3d', [(2, 2, 5, 6, 7)], [], {'output_size': (2, 4, 3)}, (2, 2, 2, 4, 3), -1.6736691977348155, [0.2608062761337076]),
    ('adaptive_max_pool3d', [(2, 2, 5, 6, 7)], [], {'output_size': (2, 4, 3)}, (2, 2, 2, 4, 3), -4.197805499166977, [2.4890140820241355]),
    ('interpolate', [(2, 3, 5)], [], {'mode': 'nearest', 'scale_factor': 1.7}, (2, 3, 8), -3.524043314624488, [-0.4871778125034045]),
    ('interpolate', [(2, 3, 5)], [], {'mode': 'nearest', 'size': (3,)}, (2, 3, 3), 6.557528302000423, [1.7814094578430308]),
    ('interpolate', [(2, 3, 5, 6)], [], {'mode': 'nearest-exact', 'scale_factor': 1.7}, (2, 3, 8, 10), -1.7806045391292584, [1.7284105965903271]),
    ('interpolate', [(2, 3, 5, 6)], [], {'mode': 'nearest-exact', 'size': (3, 7)}, (2, 3, 3, 7), -13.006296078141354, [3.3625817098936985]),
    ('interpolate', [(1, 2, 3, 4, 5)], [], {'mode': 'nearest', 'scale_factor': 1.7}, (1, 2, 5, 6, 8), -39.86723267137223, [4.7739761158796785]),
    ('interpolate', [(1, 2, 3, 4, 5)], [], {'mode': 'nearest', 'size': (3, 7, 4)}, (1, 2, 3, 7, 4), -4.018627433898608, [12.978585004887663]),
    ('interpolate', [(2, 3, 5)], [], {'mode': 'linear', 'scale_factor': 1.7}, (2, 3, 8), -1.183166313009099, [0.07165560162535806]),
    ('interpolate', [(2, 3, 5)], [], {'mode': 'linear', 'align_corners': True, 'scale_factor': 1.7}, (2, 3, 8), -0.0868038693193377, [0.45829767455400916]),
    ('interpolate', [(2, 3, 5)], [], {'mode': 'linear', 'size': (3,)}, (2, 3, 3), 5.957108964279584, [-1.0150859730380664]),
    ('interpolate', [(2, 3, 5)], [], {'mode': 'linear', 'align_corners': True, 'size': (3,)}, (2, 3, 3), 2.7300565498486815, [-0.993964778972745]),
    ('interpolate', [(2, 3, 5, 6)], [], {'mode': 'bilinear', 'scale_factor': 1.7}, (2, 3, 8, 10), -0.723035100522536, [1.0141274311559922]),
    ('interpolate', [(2, 3, 5, 6)], [], {'mode': 'bilinear', 'align_corners': True, 'scale_factor': 1.7}, (2, 3, 8, 10), -0.3831612496888681, [0.8791386155409651]),
    ('interpolate', [(2, 3, 5, 6)], [], {'mode': 'bilinear', 'size': (3, 7)}, (2, 3, 3, 7), -5.981359983970087, [1.1165717064856406]),
    ('interpolate', [(2, 3, 5, 6)], [], {'mode': 'bilinear', 'align_corners': True, 'size': (3, 7)}, (2, 3, 3, 7), -11.5067834504763, [3.441590670474884]),
    ('interpolate', [(1, 2, 3, 4, 5)], [], {'mode': 'trilinear', 'scale_factor': 1.7}, (1, 2, 5, 6, 8), 16.864615671142488, [1.2778105697296422]),
    ('interpolate', [(1, 2, 3, 4, 5)], [], {'mode': 'trilinear', 'align_corners': True, 'scale_factor': 1.7}, (1, 2, 5, 6, 8), 10.13942337762564, [0.5473173271263378]),
    ('interpolate', [(1, 2, 3, 4, 5)], [], {'mode': 'trilinear', 'size': (3, 7, 4)}, (1, 2, 3, 7, 4), 0.7548102854521779, [9.54223358879647]),
    ('interpolate', [(1, 2, 3, 4, 5)], [], {'mode': 'trilinear', 'align_corners': True, 'size': (3, 7, 4)}, (1, 2, 3, 7, 4), 1.303494847822312, [9.881630224209957]),
    ('interpolate', [(2, 3, 5, 6)], [], {'mode': 'bicubic', 'scale_factor': 1.7}, (2, 3, 8, 10), -0.10930982375224296, [0.8888204657232873]),
    ('interpolate', [(2, 3, 5, 6)], [], {'mode': 'bicubic', 'align_corners': True, 'scale_factor': 1.7}, (2, 3, 8, 10), -0.12394273179321313, [0.9285230297532574]),
    ('interpolate', [(2, 3, 5, 6)], [], {'mode': 'bicubic', 'size': (3, 7)}, (2, 3, 3, 7), -5.273809632636546, [1.5626193576657497]),
    ('interpolate', [(2, 3, 5, 6)], [], {'mode': 'bicubic', 'align_corners': True, 'size': (3, 7)}, (2, 3, 3, 7), -13.310761803006974, [4.013355130945391]),
    ('interpolate', [(2, 3, 5, 6)], [], {'mode': 'area', 'scale_factor': 1.7}, (2, 3, 8, 10), -0.7089297359943902, [0.49823616855199604]),
    ('interpolate', [(2, 3, 5, 6)], [], {'mode': 'area', 'size': (3, 7)}, (2, 3, 3, 7), 5.604563793873099, [-1.5172420099772124]),
    ('grid_sample', [(2, 3, 4, 5), (2, 3, 4, 2)], [], {'mode': 'bilinear', 'padding_mode': 'zeros', 'align_corners': False}, (2, 3, 3, 4), 1.827591512381734, [-0.2008319864592909, -9.157341074959193]),
    ('grid_sample', [(2, 2, 3, 4, 5), (2, 2, 3, 2, 3)], [], {'mode': 'bilinear', 'padding_mode': 'zeros', 'align_corners': True}, (2, 2, 2, 3, 2), 1.6761884099403064, [-1.0782405634415007, 1.7076297717567719]),
    ('grid_sample', [(2, 3, 4, 5), (2, 3, 4, 2)], [], {'mode': 'bilinear', 'padding_mode': 'border', 'align_corners': False}, (2, 3, 3, 4), -0.7117830357692216, [-0.43286045150352526, -8.89963542827575]),
    ('grid_sample', [(2, 2, 3, 4, 5), (2, 2, 3, 2, 3)], [], {'mode': 'bilinear', 'padding_mode': 'border', 'align_corners': True}, (2, 2, 2, 3, 2), 3.3693169272849133, [-1.780590886137014, 10.523928301723672]),
    ('grid_sample', [(2, 3, 4, 5), (2, 3, 4, 2)], [], {'mode': 'bilinear', 'padding_mode': 'reflection', 'align_corners': False}, (2, 3, 3, 4), -3.5304533384096657, [-0.226539278804319, -35.00913420452143]),
    ('grid_sample', [(2, 2, 3, 4, 5), (2, 2, 3, 2, 3)], [], {'mode': 'bilinear', 'padding_mode': 'reflection', 'align_corners': True}, (2, 2, 2, 3, 2), -0.24463555043031804, [-1.3231159800089753, 10.988813744318563]),
    ('grid_sample', [(2, 3, 4, 5), (2, 3, 4, 2)], [], {'mode': 'nearest', 'padding_mode': 'zeros', 'align_corners': False}, (2, 3, 3, 4), 3.4231973288194286, [-0.11875627947733625, 0.0]),
    ('grid_sample', [(2, 2, 3, 4, 5), (2, 2, 3, 2, 3)], [], {'mode': 'nearest', 'padding_mode': 'zeros', 'align_corners': True}, (2, 2, 2, 3, 2), 0.21231904940638024, [-1.9059254367914895, 0.0]),
    ('grid_sample', [(2, 3, 4, 5), (2, 3, 4, 2)], [], {'mode': 'nearest', 'padding_mode': 'border', 'align_corners': False}, (2, 3, 3, 4), -4.108447456034251, [-0.7426982421517296, 0.0]),
    ('grid_sample', [(2, 2, 3, 4, 5), (2, 2, 3, 2, 3)], [], {'mode': 'nearest', 'padding_mode': 'border', 'align_corners': True}, (2, 2, 2, 3, 2), 2.1059988603295556, [-2.117549301305032, 0.0]),
    ('grid_sample', [(2, 3, 4, 5), (2, 3, 4, 2)], [], {'mode': 'nearest', 'padding_mode': 'reflection', 'align_corners': False}, (2, 3, 3, 4), -11.752396540375006, [-0.1680710897302684, 0.0]),
    ('grid_sample', [(2, 2, 3, 4, 5), (2, 2, 3, 2, 3)], [], {'mode': 'nearest', 'padding_mode': 'reflection', 'align_corners': True}, (2, 2, 2, 3, 2), -7.112256234441551, [-1.236701741516177, 0.0]),
    ('affine_grid', [(2, 2, 3)], [], {'size': (2, 1, 4, 5), 'align_corners': False}, (2, 4, 5, 2), -0.016156330609670366, [-0.33043107067342214]),
    ('affine_grid', [(2, 3, 4)], [], {'size': (2, 1, 3, 4, 5), 'align_corners': True}, (2, 3, 4, 5, 3), 6.565361380359153, [-2.6235191401187756]),
    ('pixel_shuffle', [(2, 8, 3, 4)], [], {'upscale_factor': 2}, (2, 2, 6, 8), 10.88159000920969, [-3.2027095777928136]),
    ('pixel_unshuffle', [(2, 2, 6, 4)], [], {'downscale_factor': 2}, (2, 8, 3, 2), -5.575258920755506, [0.8916619462377389]),
    ('local_response_norm', [(2, 6, 3, 2)], [], {'size': 4, 'alpha': 0.3, 'beta': 0.6, 'k': 1.5}, (2, 6, 3, 2), 1.299880002071509, [-0.1518790564354645]),
    ('celu', [(3, 5)], [], {'alpha': 0.5}, (3, 5), 0.6914839083355182, [0.3172495339606928]),
    ('hard_shrink', [(3, 5)], [], {'lambd': 0.4}, (3, 5), -1.439840622933458, [-0.06613243997362028]),
    ('soft_shrink', [(3, 5)], [], {'lambd': 0.4}, (3, 5), -1.3548100986353058, [-0.06613243997362028]),
    ('log_sigmoid', [(3, 5)], [], {}, (3, 5), -2.438215816794301, [-0.05195876035389979]),
    ('softsign', [(3, 5)], [], {}, (3, 5), -0.4980700348183402, [-0.09913837552102446]),
    ('tanh_shrink', [(3, 5)], [], {}, (3, 5), -0.8619028814963225, [0.08160834421534513]),
    ('threshold', [(3, 5)], [], {'threshold': 0.3, 'value': 2.0}, (3, 5), 2.237691616432583, [0.5813510452702122]),
    ('glu', [(3, 4, 2)], [], {'axis': 1}, (3, 2, 2), 0.6086045590635114, [0.09086311923760465]),
    ('soft_margin', [(6,)], [[1, -1, -1, 1, 1, -1]], {'reduction': 'mean'}, (), 1.0690300863570705, [0.15654066884581277]),
    ('hinge_embedding', [(6,)], [[1, -1, -1, 1, 1, -1]], {'margin': 0.7, 'reduction': 'mean'}, (), 0.09076738842997613, [-0.05020374721967941]),
    ('margin_ranking', [(6,), (6,)], [[1, -1, -1, 1, 1, -1]], {'margin': 0.3, 'reduction': 'mean'}, (), 1.3079059083555395, [0.10320355496875974, -0.10320355496875974]),
    ('multi_margin', [(4, 3)], [[0, 2, 1, 1]], {'p': 2, 'margin': 0.5, 'reduction': 'mean'}, (), 1.7593279713850287, [-0.25887908950867133]),
    ('multi_margin', [(4, 3)], [[0, 2, 1, 1]], {'reduction': 'mean'}, (), 0.9737643700538102, [-0.10052933191122873]),
    ('multilabel_margin', [(3, 4)], [[[3, 0, -1, 1], [-1, 2, 1, 0], [0, 1, 2, -1]]], {'reduction': 'mean'}, (), 1.0056213924371804, [0.01949693102704797]),
    ('multilabel_soft_margin', [(2, 3)], [[[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]]], {'reduction': 'mean'}, (), 0.7776628791368043, [-0.0333941856395672]),
    ('nll', [(4, 3)], [[0, 2, 1, 1]], {'ignore_index': 2, 'reduction': 'mean'}, (), 0.2592570348292807, [-0.2671781843178982]),
    ('gaussian_nll', [(2, 3), (2, 3), (2, 3)], [], {'full': True, 'reduction': 'mean'}, (), 1.2902125608277681, [0.3263549916550957, -0.3263549916550957, -0.05884249601564587]),
    ('poisson_nll', [(2, 3)], [[[1.0, 0.0, 3.0], [2.0, 5.0, 1.0]]], {'full': True, 'reduction': 'mean'}, (), 4.080332717650445, [1.614674958842659]),
    ('ctc', [(7, 2, 4)], [[[1, 2, 2], [3, 1, 3]], [7, 5], [3, 2]], {'reduction': 'mean'}, (), 2.0095317989855475, [0.4386761533492197]),
    ('soft_margin', [(6,)], [[1, -1, -1, 1, 1, -1]], {'reduction': 'sum'}, (), 6.414180518142423, [0.9392440130748769]),
    ('hinge_embedding', [(6,)], [[1, -1, -1, 1, 1, -1]], {'margin': 0.7, 'reduction': 'sum'}, (), 0.5446043305798567, [-0.30122248331807666]),
    ('margin_ranking', [(6,), (6,)], [[1, -1, -1, 1, 1, -1]], {'margin': 0.3, 'reduction': 'sum'}, (), 7.847435450133238, [0.6192213298125584, -0.6192213298125584]),
    ('multi_margin', [(4, 3)], [[0, 2, 1, 1]], {'p': 2, 'margin': 0.5, 'reduction': 'sum'}, (), 7.037311885540115, [-1.0355163580346853]),
    ('multi_margin', [(4, 3)], [[0, 2, 1, 1]], {'reduction': 'sum'}, (), 3.895057480215241, [-0.4021173276449149]),
    ('multilabel_margin', [(3, 4)], [[[3, 0, -1, 1], [-1, 2, 1, 0], [0, 1, 2, -1]]], {'reduction': 'sum'}, (), 3.0168641773115414, [0.058490793081143855]),
    ('multilabel_soft_margin', [(2, 3)], [[[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]]], {'reduction': 'sum'}, (), 1.5553257582736086, [-0.0667883712791344]),
    ('nll', [(4, 3)], [[0, 2, 1, 1]], {'ignore_index': 2, 'reduction': 'sum'}, (), 0.777771104487842, [-0.8015345529536945]),
    ('gaussian_nll', [(2, 3), (2, 3), (2, 3)], [], {'full': True, 'reduction': 'sum'}, (), 7.741275364966609, [1.9581299499305735, -1.9581299499305735, -0.3530549760938755]),
    ('poisson_nll', [(2, 3)], [[[1.0, 0.0, 3.0], [2.0, 5.0, 1.0]]], {'full': True, 'reduction': 'sum'}, (), 24.481996305902673, [9.688049753055953]),
    ('ctc', [(7, 2, 4)], [[[1, 2, 2], [3, 1, 3]], [7, 5], [3, 2]], {'reduction': 'sum'}, (), 10.09767343258637, [2.3522425847326365]),
    ('soft_margin', [(6,)], [[1, -1, -1, 1, 1, -1]], {'reduction': 'none'}, (6,), -1.415146133016805, [0.03452178911718723]),
    ('hinge_embedding', [(6,)], [[1, -1, -1, 1, 1, -1]], {'margin': 0.7, 'reduction': 'none'}, (6,), 2.270509449347633, [-0.033676265864092766]),
    ('margin_ranking', [(6,), (6,)], [[1, -1, -1, 1, 1, -1]], {'margin': 0.3, 'reduction': 'none'}, (6,), -0.6101867988507225, [-0.048652174981290944, 0.048652174981290944]),
    ('multi_margin', [(4, 3)], [[0, 2, 1, 1]], {'p': 2, 'margin': 0.5, 'reduction': 'none'}, (4,), -3.3680249457243967, [0.4258521622429695]),
    ('multi_margin', [(4, 3)], [[0, 2, 1, 1]], {'reduction': 'none'}, (4,), -1.5038228547009573, [0.05071517322692212]),
    ('multilabel_margin', [(3, 4)], [[[3, 0, -1, 1], [-1, 2, 1, 0], [0, 1, 2, -1]]], {'reduction': 'none'}, (3,), 2.006805058083403, [0.5173099390937711]),
    ('multilabel_soft_margin', [(2, 3)], [[[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]]], {'reduction': 'none'}, (2,), 1.2676047694220014, [0.13883651173492725]),
    ('nll', [(4, 3)], [[0, 2, 1, 1]], {'ignore_index': 2, 'reduction': 'none'}, (4,), -2.093793194168501, [-0.19391931696977]),
    ('gaussian_nll', [(2, 3), (2, 3), (2, 3)], [], {'full': True, 'reduction': 'none'}, (2, 3), -0.24635408774525575, [-0.3557597902937762, 0.3557597902937762, 0.05556252912109341]),
    ('poisson_nll', [(2, 3)], [[[1.0, 0.0, 3.0], [2.0, 5.0, 1.0]]], {'full': True, 'reduction': 'none'}, (2, 3), -4.413475787728012, [1.4874185572072853]),
    ('ctc', [(7, 2, 4)], [[[1, 2, 2], [3, 1, 3]], [7, 5], [3, 2]], {'reduction': 'none'}, (2,), 7.665122936151858, [1.6477286214312425]),
]
# fmt: on


def _wave(shape: tuple[int, ...], phase: int) -> np.ndarray:
    n = int(np.prod(shape))
    wave = np.sin(np.arange(n) * 1.7 + phase) * 1.5 + np.cos(np.arange(n) * 0.61 + phase)
    return wave.reshape(shape)


def _projected(t: et.ExTensor) -> float:
    array = t.numpy()
    return float((array * np.cos(np.arange(array.size) * 0.9 + 0.3).reshape(array.shape)).sum())


@pytest.mark.parametrize(
    ("name", "shapes", "others", "options", "shape", "result", "gradients"),
    ROWS,
    ids=[f"{row[0]}-{i}" for i, row in enumerate(ROWS)],
)
def test_as_pytorch(
    name: str,
    shapes: Any,
    others: Any,
    options: dict[str, Any],
    shape: Any,
    result: float,
    gradients: list[float],
) -> None:
    waves = [_wave(s, i) for i, s in enumerate(shapes)]
    if name == "gaussian_nll":
        waves[2] = waves[2] ** 2 + 0.1  # variances
    inputs = [et.tensor(wave, requires_grad=True) for wave in waves]
    given = [et.log_softmax(inputs[0])] if name == "ctc" else inputs
    y = getattr(et, name)(*given, *map(et.tensor, others), **options)
    assert y.shape == shape
    assert _projected(y) == pytest.approx(result, rel=1e-9, abs=1e-9)
    y.backward(et.tensor(np.cos(np.arange(y.size) * 1.3 + 0.5).reshape(y.shape)))
    for x, expected in zip(inputs, gradients):
        assert x.grad is not None
        assert _projected(x.grad) == pytest.approx(expected, rel=1e-9, abs=1e-9)
