"""Prediction-error fits: models with process noise, by an extended Kalman filter.

Start with `process_noise.py`.
May import `identification/result` and lower layers.
"""
