"""Prediction-error fits: models with process noise, by an extended Kalman filter."""
